"""What users are told when something is wrong: what was needed, what was got, what to do.

Every error a user can cause is worded here and raised where it is noticed. All are ``ValueError``s.
"""

# ruff: noqa: F403  # the names of all rooms are used as  errors.name

from covalign._validation.base import *
from covalign._validation.cli import *
from covalign._validation.commands import *
from covalign._validation.data import *
from covalign._validation.figures import *
from covalign._validation.models import *
from covalign._validation.numbers import *
from covalign._validation.scverse import *
from covalign._validation.sources import *
from covalign._validation.tables import *
