"""What users are told when something is wrong: what was needed, what was got, what to do.

Every error a user can cause is worded here and raised where it is noticed. All are ``ValueError``s.
"""

# ruff: noqa: F403  # the names of all rooms are used as  errors.name

from covalign._core.checks import *
from covalign._core.extras import missing_extra as missing_extra
from covalign._core.files import data_not_found as data_not_found
from covalign._core.files import target_exists as target_exists
from covalign._core.files import unreadable_data as unreadable_data
from covalign._core.validation.base import *
from covalign._core.validation.data import *
from covalign._core.validation.models import *
from covalign._core.validation.sources import *
from covalign._core.validation.tables import *
from covalign.exceptions import *
