package io.github.leafid.spring;

import com.baomidou.mybatisplus.core.incrementer.IdentifierGenerator;
import io.github.leafid.IdGenerator;
import io.github.leafid.mybatisplus.LeafIdentifierGenerator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** Has MyBatis-Plus use the bean {@link IdGenerator}, unless there is an {@link IdentifierGenerator} already. */
@AutoConfiguration(after = LeafAutoConfiguration.class, beforeName = "com.baomidou.mybatisplus.autoconfigure.IdentifierGeneratorAutoConfiguration")
@ConditionalOnClass(IdentifierGenerator.class)
public class LeafMyBatisPlusAutoConfiguration {
    /** Makes the configuration, as Spring does. */
    public LeafMyBatisPlusAutoConfiguration() {}

    @Bean
    @ConditionalOnBean(IdGenerator.class)
    @ConditionalOnMissingBean(IdentifierGenerator.class)
    LeafIdentifierGenerator leafIdentifierGenerator(IdGenerator ids) {
        return new LeafIdentifierGenerator(ids);
    }
}
