// The site is docs/ as it stands: this file adds the navigation, the search and the links that
// leave docs/. Pages are written for a plain Git host too.
import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))
const repository = 'https://github.com/leaf-id/leaf'
const sections = JSON.parse(readFileSync(new URL('../navigation.json', import.meta.url)))

// title is the heading of a page, without marks.
function title(file) {
  const heading = /^# (.*)$/m.exec(readFileSync(docs + file, 'utf8'))
  if (!heading) throw new Error(`docs/${file} has no heading`)
  return heading[1].replaceAll('`', '')
}

// sidebar lists the pages of a language. A page without a translation leads to the English one.
function sidebar(language) {
  return sections.map(section => ({
    text: section[language],
    collapsed: false,
    items: section.pages.map(page => {
      const own = language === 'en' ? `${page}.md` : `${language}/${page}.md`
      const file = existsSync(docs + own) ? own : `${page}.md`
      return { text: title(file) + (file === own ? '' : ' (EN)'), link: '/' + file.replace(/\.md$/, '') }
    }),
  }))
}

// links changes links as a Git host reads them into links of the site. A link named after its file
// gets the title of the page.
function links(md) {
  md.core.ruler.push('links', state => {
    const here = state.env.relativePath
    for (const block of state.tokens) {
      const children = block.children ?? []
      for (const [i, token] of children.entries()) {
        const href = token.type === 'link_open' ? token.attrGet('href') : null
        if (!href || /^([a-z]+:|#|\/)/i.test(href)) continue
        const target = posix.join('docs', posix.dirname(here), href)
        if (!target.startsWith('docs/')) token.attrSet('href', `${repository}/blob/main/${target}`)
        else token.attrSet('href', href.replace(/(^|\/)README\.md/, '$1index.md'))
        const file = target.replace(/^docs\/|#.*$/g, '')
        if (/^[\w-]+\.md$/.test(children[i + 1].content) && existsSync(docs + file)) children[i + 1].content = title(file)
      }
    }
  })
}

// slugify makes anchors as Git hosts do.
const slugify = title => title.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-')

// breaks drops the line breaks of the source between Chinese characters, which a browser would show
// as spaces.
function breaks(md) {
  const chinese = token => /^[\p{Script=Han}（《“]/u.test(token?.content ?? '')
  md.renderer.rules.softbreak = (tokens, i) => {
    const before = tokens[i - 1]?.content ?? ''
    return /[，。；：、？！）》”]$/u.test(before) || (/\p{Script=Han}$/u.test(before) && chinese(tokens[i + 1])) ? '' : '\n'
  }
}

// mermaid hands blocks of Mermaid to the component that draws them.
function mermaid(md) {
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, i, options, env, self) => {
    if (tokens[i].info.trim() !== 'mermaid') return fence(tokens, i, options, env, self)
    return `<Mermaid name="mermaid-${i}" code="${encodeURIComponent(tokens[i].content)}" />`
  }
}

// tokenize splits text into words, and Chinese, which has no spaces, into pairs of characters.
// The browser runs it too, so it uses nothing from outside.
function tokenize(text) {
  const words = []
  for (const word of text.split(/[\s\p{P}\p{S}]+/u)) {
    for (const part of word.match(/\p{Script=Han}+|[^\p{Script=Han}]+/gu) ?? []) {
      if (!/\p{Script=Han}/u.test(part) || part.length === 1) words.push(part)
      else for (let i = 0; i + 1 < part.length; i++) words.push(part.slice(i, i + 2))
    }
  }
  return words
}

const tagline = {
  en: 'Unique 64-bit IDs for any number of servers, in Go',
  zh: '用 Go 实现的分布式唯一 ID 服务',
}

// home turns README.md, which a Git host shows for the folder, into the front page.
function home(page) {
  if (!/(^|\/)(README|index)\.md$/.test(page.relativePath)) return
  const zh = page.relativePath.startsWith('zh/')
  const to = name => (zh && existsSync(`${docs}zh/${name}.md`) ? '/zh/' : '/') + name
  page.frontmatter.layout = 'home'
  page.frontmatter.hero = {
    name: 'Leaf',
    text: zh ? '分布式唯一 ID' : 'Unique IDs',
    tagline: zh ? tagline.zh : tagline.en,
    actions: [
      { theme: 'brand', text: zh ? '五分钟上手' : 'Start in 5 minutes', link: to('start') },
      { theme: 'alt', text: zh ? '选哪种模式？' : 'Which one should I use?', link: to('which') },
    ],
  }
}

export default {
  title: 'Leaf',
  description: tagline.en,
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'pages', // a copy of docs/ made by build, so that its pages find node_modules
  outDir: '../bin/site',
  cacheDir: 'node_modules/.cache/vitepress',
  rewrites: { 'README.md': 'index.md', 'zh/README.md': 'zh/index.md' },
  head: [['link', { rel: 'icon', href: 'data:image/svg+xml,' + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M2 14C2 6 6 2 14 2c0 8-4 12-12 12z" fill="#43a047"/></svg>') }]],
  locales: {
    root: { label: 'English', lang: 'en', themeConfig: { sidebar: sidebar('en') } },
    zh: {
      label: '简体中文',
      lang: 'zh-CN',
      description: tagline.zh,
      themeConfig: {
        sidebar: sidebar('zh'),
        outline: { level: [2, 3], label: '本页目录' },
        docFooter: { prev: '上一页', next: '下一页' },
        darkModeSwitchLabel: '外观',
        lightModeSwitchTitle: '切换到浅色模式',
        darkModeSwitchTitle: '切换到深色模式',
        sidebarMenuLabel: '目录',
        returnToTopLabel: '回到顶部',
        langMenuLabel: '切换语言',
      },
    },
  },
  themeConfig: {
    outline: { level: [2, 3] },
    socialLinks: [{ icon: 'github', link: repository }],
    search: {
      provider: 'local',
      options: {
        miniSearch: { options: { tokenize } },
        locales: {
          zh: {
            translations: {
              button: { buttonText: '搜索', buttonAriaLabel: '搜索' },
              modal: {
                displayDetails: '显示详情',
                resetButtonTitle: '清除',
                backButtonTitle: '返回',
                noResultsText: '没有结果：',
                footer: { selectText: '选择', navigateText: '移动', closeText: '关闭' },
              },
            },
          },
        },
      },
    },
  },
  markdown: { anchor: { slugify }, config(md) { links(md); mermaid(md); breaks(md) } },
  transformPageData: home,
  vite: {
    build: { chunkSizeWarningLimit: 3000 }, // Mermaid, which only pages with such pictures load
  },
}
