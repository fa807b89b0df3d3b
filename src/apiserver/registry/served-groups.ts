/** The order of groups and versions in discovery: first those of the catalog, then those added at run time. */
import { groups, type Kind, kindFor, type ServedGroup } from '#apis/kinds.ts'
import { compareText } from '#lib/go/text.ts'
import { compareVersions } from '#meta/kind.ts'

/** Those of the catalog, with the served kinds. */
export function builtInGroups(isThere: (kind: Kind) => boolean): ServedGroup[] {
  return groups.map(({ name, versions }) => ({
    name,
    versions: versions
      .map((version) => ({ ...version, kinds: version.kinds.filter(isThere) }))
      .filter(({ kinds }) => kinds.length > 0),
  }))
}

/** The kinds outside the catalog: groups by name, versions by age with stable ones first, kinds in insertion order. */
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
