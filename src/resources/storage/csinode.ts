/** CSINode: the storage drivers that run on a node, and how each knows it. */
import { type CSINode, type CSINodeDriver, CSINodes } from '#apis/storage/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go-text.ts'
import { createRepetition, firstByKey } from '#lib/repetition.ts'
import { child, duplicate, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'
import { immutable, nonNegative } from '#meta/validation/rules.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'
import { validateDriverName } from '#model/pod-spec/volume-sources.ts'

const MAX_NODE_ID_BYTES = 256

export const csiNode: Resource<CSINode> = defineResource<CSINode>({
  kind: CSINodes,
  metadataRules: { update: ['whole'] },
  validate: ({ spec }) => validateDrivers(spec.drivers ?? []),
  validateUpdate: (next, old, { isEnabled }) => {
    const mutableCount = isEnabled('MutableCSINodeAllocatableCount')
    const drivers = next.spec.drivers ?? []
    const byName = Map.groupBy(drivers, ({ name }) => name)
    // Validation refuses repeated names, so that comparing them pair by pair would only repeat the refusals.
    const olds = [...firstByKey(old.spec.drivers ?? [], ({ name }) => name).values()]
    const changed = olds.flatMap((before) =>
      (byName.get(before.name) ?? []).flatMap((now) =>
        immutable('spec.drivers', fixedPart(now, mutableCount), fixedPart(before, mutableCount)),
      ),
    )
    return [...validateDrivers(drivers), ...changed]
  },
  columns: [
    nameColumn,
    { name: 'Drivers', type: 'integer', value: ({ spec }) => (spec.drivers ?? []).length },
    ageColumn,
  ],
  deleteAnswersObject: true,
  putNeedsVersion: true,
})

function fixedPart(driver: CSINodeDriver, mutableCount: boolean): Partial<CSINodeDriver> {
  const { allocatable: _, ...rest } = driver
  return mutableCount ? rest : driver
}

function validateDrivers(drivers: readonly CSINodeDriver[]): FieldError[] {
  const seen = new Set<string>()
  return drivers.flatMap((driver, at) => {
    const path = index('spec.drivers', at)
    const { name, nodeID, allocatable } = driver
    const repeated = seen.has(name)
    seen.add(name)
    return [
      ...validateDriverName(child(path, 'name'), name),
      ...(nodeID === '' ? [required(child(path, 'nodeID'))] : []),
      ...(byteLength(nodeID) > MAX_NODE_ID_BYTES
        ? [invalid(child(path, 'nodeID'), nodeID, `must be ${MAX_NODE_ID_BYTES} characters or less`)]
        : []),
      ...nonNegative(child(path, 'allocatable.count'), allocatable?.count),
      ...(repeated ? [duplicate(child(path, 'name'), name)] : []),
      ...validateTopologyKeys(path, driver.topologyKeys ?? []),
    ]
  })
}

/** Upstream complains at the driver, not at the key. */
function validateTopologyKeys(path: string, keys: readonly string[]): FieldError[] {
  const isRepeated = createRepetition()
  return keys.flatMap((key) => [
    ...(key === '' ? [required(path)] : []),
    ...(isRepeated(key) ? [duplicate(path, key)] : []),
    ...validateQualifiedName(path, key),
  ])
}
