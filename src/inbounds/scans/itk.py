"""The geometry of ITK: an origin, three directions and a spacing, in millimetres left, posterior, superior.

MetaImage, NRRD and DICOM scans all have it. SimpleITK is imported when the first of them comes along.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inbounds.errors import BadInput
from inbounds.scans.format import Affine, Mask, Shape, Spacing, check_grid, library
from inbounds.scans.nifti import SUFFIXES as NIFTI
from inbounds.scans.nifti import write_affine

SUFFIXES = (".mhd", ".mha", ".nrrd", ".nhdr")


@dataclass(frozen=True)
class ItkGeometry:
    """Size, spacing and origin along the file's axes (column, row, slice), whose directions are a matrix's columns."""

    size: tuple[int, ...]
    spacing: tuple[float, ...]
    origin: tuple[float, ...]
    direction: tuple[float, ...]

    @property
    def affine(self) -> Affine:
        """From `(column, row, slice, 1)` to right, anterior, superior; a 2-D image lies in the plane of slice 0."""
        axes = min(len(self.size), 3)
        affine = np.eye(4)
        matrix = np.reshape(self.direction, (len(self.size), -1)) * np.asarray(self.spacing)
        affine[:axes, :axes] = matrix[:axes, :axes]
        affine[:axes, 3] = self.origin[:axes]
        return np.diag([-1.0, -1.0, 1.0, 1.0]) @ affine

    def check(self, path: Path) -> None:
        """The mask is MetaImage, NRRD or NIfTI."""
        if not path.name.lower().endswith((*NIFTI, *SUFFIXES)):
            raise BadInput(
                f"{path}: the mask of this scan cannot have that format; name it {', '.join((*NIFTI, *SUFFIXES))}"
            )

    def write(self, mask: Mask, path: Path) -> None:
        """Write a mask with the same origin, spacing and direction, or with the same affine."""
        if path.name.lower().endswith(NIFTI):
            write_affine(mask, self.affine, path)
            return
        itk = toolkit(path)
        image = itk.GetImageFromArray(mask.reshape(self.size[::-1]), isVector=False)
        image.SetSpacing(self.spacing)
        image.SetOrigin(self.origin)
        image.SetDirection(self.direction)
        try:
            itk.WriteImage(image, str(path), True)
        except RuntimeError as error:
            raise OSError(str(error).splitlines()[-1]) from error


def toolkit(path: Path) -> Any:
    """SimpleITK, with its warnings to the terminal off: what they would say is checked here and named by file."""
    itk = library("SimpleITK", path)
    itk.ProcessObject.SetGlobalWarningDisplay(False)
    return itk


def check_geometry(path: Path, geometry: ItkGeometry) -> tuple[Shape, Spacing]:
    """Refuse a size, a position or an orientation that is no place in space; else slices, rows, columns."""
    grid = check_grid(path, geometry.size, geometry.spacing)
    if not all(map(math.isfinite, (*geometry.origin, *geometry.direction))):
        raise BadInput(f"{path}: the header's origin or orientation holds NaN or infinity; export the scan again")
    if abs(np.linalg.det(np.reshape(geometry.direction, (len(geometry.size), -1)))) < 1e-6:
        listed = " ".join(f"{value:g}" for value in geometry.direction)
        raise BadInput(f"{path}: the header's orientation ({listed}) is flat: two axes coincide; export the scan again")
    return grid
