"""IDs from Leaf as primary keys of SQLAlchemy: pip install leaf-id sqlalchemy"""

import os

from sqlalchemy import BigInteger, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from leaf_id import LeafClient

leaf = LeafClient(os.environ.get("LEAF_URL", "http://127.0.0.1:8080"))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False, default=leaf.tag("order").next)
    item: Mapped[str]


engine = create_engine(os.environ.get("DATABASE_URL", "sqlite://"))
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all([Order(item="tea"), Order(item="cups")])
    session.commit()
    for order in session.scalars(select(Order)):
        print(order.id, order.item)
leaf.close()
