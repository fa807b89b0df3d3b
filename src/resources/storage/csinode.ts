/** The CSINode resource: the storage drivers of a node, and its id in each of them. */
import { type CSINode, type CSINodeDriver, CSINodes } from '#apis/storage/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { createRepetition, firstByKey } from '#lib/repetition.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable, nonNegative, validateQualifiedName } from '#meta/validation/rules.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

const MAX_NODE_ID_BYTES = 256

export const csiNode: Resource<CSINode> = defineResource<CSINode>({
  kind: CSINodes,
  metadataRules: { update: ['whole'] },
  validate: ({ spec }) => validateDrivers(spec.drivers ?? []),
  validateUpdate: (next, old, { isEnabled }) => {
    const mutableCount = isEnabled('MutableCSINodeAllocatableCount')
    const drivers = next.spec.drivers ?? []
    const byName = Map.groupBy(drivers, ({ name }) => name)
    // Validation rejects duplicate names, so that comparing them pairwise would only repeat errors.
    const olds = [...firstByKey(old.spec.drivers ?? [], ({ name }) => name).values()]
    const changed = olds.flatMap((before) =>
      (byName.get(before.name) ?? []).flatMap((now) =>
        immutable(fieldPath('spec.drivers'), fixedPart(now, mutableCount), fixedPart(before, mutableCount)),
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
  const isRepeated = createRepetition()
  return fieldPath('spec.drivers').each(drivers, (path, driver) => {
    const { name, nodeID, allocatable } = driver
    const repeated = isRepeated(name)
    return collectErrors(
      validateDriverName(path.child('name'), name),
      nodeID === '' && path.child('nodeID').required(),
      byteLength(nodeID) > MAX_NODE_ID_BYTES &&
        path.child('nodeID').invalid(nodeID, `must be ${MAX_NODE_ID_BYTES} characters or less`),
      nonNegative(path.child('allocatable.count'), allocatable?.count),
      repeated && path.child('name').duplicate(name),
      validateTopologyKeys(path, driver.topologyKeys ?? []),
    )
  })
}

/** Upstream reports the error at the driver, not at the key. */
function validateTopologyKeys(path: FieldPath, keys: readonly string[]): FieldError[] {
  const isRepeated = createRepetition()
  return keys.flatMap((key) =>
    collectErrors(
      key === '' && path.required(),
      isRepeated(key) && path.duplicate(key),
      validateQualifiedName(path, key),
    ),
  )
}
