"""IDs from Leaf as primary keys of Django: pip install leaf-id django. Here in one file; in a project
the client and the model belong into an application's models.py."""

import os

import django
from django.conf import settings
from django.db import connection, models

from leaf_id import LeafClient

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()

leaf = LeafClient(os.environ.get("LEAF_URL", "http://127.0.0.1:8080"))


def order_id() -> int:  # a function with a name, so that migrations can refer to it
    return leaf.next("order")


class Order(models.Model):
    id = models.BigIntegerField(primary_key=True, default=order_id, editable=False)
    item = models.TextField()

    class Meta:
        app_label = "shop"


with connection.schema_editor() as editor:  # instead of a migration
    editor.create_model(Order)
Order.objects.create(item="tea")
Order.objects.bulk_create([Order(item="cups"), Order(item="sugar")])
for order in Order.objects.all():
    print(order.id, order.item)
leaf.close()
