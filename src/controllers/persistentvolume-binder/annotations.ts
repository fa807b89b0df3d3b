/** What the binder and provisioners tell each other in annotations of claims and volumes. Pure. */
import type { ObjectMeta } from '#meta/object.ts'
import { driverOf } from '#model/csi-migration.ts'
import type { Annotations } from '#model/volume-binding.ts'

export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by'
export const MIGRATED_TO = 'pv.kubernetes.io/migrated-to'
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner'
const OLD_STORAGE_PROVISIONER = 'volume.beta.kubernetes.io/storage-provisioner'

/** Finalizers of volumes that are to be deleted with what is on them: by this controller, by provisioners outside. */
export const IN_TREE_FINALIZER = 'kubernetes.io/pv-controller'
const EXTERNAL_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer'

/** Says which driver is to look after the volume or claim, where a plugin of old was; the same annotations where all is said. */
export function migrated(annotations: Annotations, provisioner: string | undefined): Annotations {
  if (provisioner === undefined) return annotations
  const driver = driverOf(provisioner)
  const { [MIGRATED_TO]: told, ...rest } = annotations
  if ((told ?? '') === (driver ?? '')) return annotations
  return driver === undefined ? rest : { ...rest, [MIGRATED_TO]: driver }
}

export function provisionerOfClaim({ annotations = {} }: ObjectMeta): string | undefined {
  return annotations[STORAGE_PROVISIONER] ?? annotations[OLD_STORAGE_PROVISIONER]
}

/** Hands a claim over to its provisioner. */
export function provisionedBy(annotations: Annotations, provisioner: string): Annotations {
  const told = { ...annotations, [OLD_STORAGE_PROVISIONER]: provisioner, [STORAGE_PROVISIONER]: provisioner }
  return migrated(told, provisioner)
}

/** The finalizers a volume is to have that was made by a plugin of this controller; the same list where it has them. */
export function deletionFinalizers(
  finalizers: readonly string[],
  provisioner: string | undefined,
  policy: string,
): readonly string[] {
  if (provisioner === undefined) return finalizers
  const without = (...names: string[]): readonly string[] =>
    finalizers.some((name) => names.includes(name)) ? finalizers.filter((name) => !names.includes(name)) : finalizers
  if (driverOf(provisioner) !== undefined) return without(IN_TREE_FINALIZER)
  if (!provisioner.startsWith('kubernetes.io/')) return finalizers
  if (policy !== 'Delete') return without(IN_TREE_FINALIZER, EXTERNAL_FINALIZER)
  const rest = without(EXTERNAL_FINALIZER)
  return rest.includes(IN_TREE_FINALIZER) ? rest : [...rest, IN_TREE_FINALIZER]
}
