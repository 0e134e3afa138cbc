// Between what is on the screen of a plane and the voxels of the file. A whole number is the middle of a voxel.

/** From a place on a plane's slice `n` (display order) to slice, row, column of the file. */
export function toVoxel(plane, n, x, y) {
  const voxel = [0, 0, 0];
  voxel[plane.through] = plane.flip.through ? plane.count - 1 - n : n;
  voxel[plane.down] = plane.flip.down ? plane.rows - 1 - y : y;
  voxel[plane.across] = plane.flip.across ? plane.columns - 1 - x : x;
  return voxel;
}

/** From slice, row, column of the file to a place on a plane, and the number of its slice. */
export function toPlane(plane, voxel) {
  const [through, down, across] = [voxel[plane.through], voxel[plane.down], voxel[plane.across]];
  return {
    n: plane.flip.through ? plane.count - 1 - through : through,
    x: plane.flip.across ? plane.columns - 1 - across : across,
    y: plane.flip.down ? plane.rows - 1 - down : down,
  };
}

/** The file's own number of a plane's slice. */
export const fileSlice = (plane, n) => (plane.flip.through ? plane.count - 1 - n : n);

/** The middle of a scan, on a voxel. */
export const middle = (shape) => shape.map((length) => Math.floor(length / 2));

/** An area in mm2 of an ellipse whose box has these corners in voxels, within a plane. */
export function ellipseArea(plane, [a, b]) {
  const width = Math.abs(a[plane.across] - b[plane.across]) * plane.mm.across;
  const height = Math.abs(a[plane.down] - b[plane.down]) * plane.mm.down;
  return (Math.PI / 4) * width * height;
}

/** The length in mm of a line between two voxels within a plane. */
export function length(plane, [a, b]) {
  return Math.hypot((a[plane.across] - b[plane.across]) * plane.mm.across, (a[plane.down] - b[plane.down]) * plane.mm.down);
}
