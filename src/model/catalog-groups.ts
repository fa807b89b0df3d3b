/** The API groups of the catalog of built-in kinds. */
import { groups } from '#apis/kinds.ts'

/** True if the catalog does not contain the group: unserved parts of it are plain 404 pages. */
export function isAddedGroup(group: string): boolean {
  return !CATALOG.has(group)
}

const CATALOG = new Set(groups.map(({ name }) => name))
