/** Which groups and versions discovery shows, and in which order: those of the catalog, then whatever was added. */
import { groups, type Kind, kindFor, type ServedGroup } from '#apis/kinds.ts'
import { compareText } from '#lib/go-text.ts'
import { compareVersions } from '#meta/kind.ts'

/** Of the catalog, with the kinds that are there. */
export function builtInGroups(isThere: (kind: Kind) => boolean): ServedGroup[] {
  return groups.map(({ name, versions }) => ({
    name,
    versions: versions
      .map((version) => ({ ...version, kinds: version.kinds.filter(isThere) }))
      .filter(({ kinds }) => kinds.length > 0),
  }))
}

/** Whether the catalog knows nothing of the group: what is not served of it is not the API's to refuse. */
export function isAddedGroup(group: string): boolean {
  return !CATALOG.has(group)
}

const CATALOG = new Set(groups.map(({ name }) => name))

/** Of the kinds that the catalog does not know: groups by name, versions by age, the stable ones first, kinds as they came. */
export function addedGroups(kinds: readonly Kind[]): ServedGroup[] {
  const added = Map.groupBy(
    kinds.filter((kind) => kindFor(kind) === undefined),
    ({ group }) => group,
  )
  return [...added.keys()].sort(compareText).map((group) => {
    const byVersion = Map.groupBy(added.get(group) ?? [], ({ version }) => version)
    const versions = [...byVersion].sort(([one], [other]) => compareVersions(other, one))
    return {
      name: group,
      versions: versions.map(([version, own]) => ({
        group,
        version,
        servedByDefault: true,
        kinds: own,
      })),
    }
  })
}
