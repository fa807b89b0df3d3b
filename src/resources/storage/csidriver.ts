/** The CSIDriver resource: the properties of a storage driver. */
import { type CSIDriver, CSIDrivers, type CSIDriverSpec, type TokenRequest } from '#apis/storage/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'

const gatedFields = [
  ['seLinuxMount', 'SELinuxMountReadWriteOncePod'],
  ['nodeAllocatableUpdatePeriodSeconds', 'MutableCSINodeAllocatableCount'],
  ['serviceAccountTokenInSecrets', 'CSIServiceAccountTokenSecrets'],
  ['preventPodSchedulingIfMissing', 'VolumeLimitScaling'],
] as const

export const csiDriver: Resource<CSIDriver> = defineResource<CSIDriver>({
  kind: CSIDrivers,
  // Upstream starts the generation at its first change: a new object has none.
  generation: (next, old) => !semanticEqual(next.spec, old.spec),
  applyDefaults({ spec }, { isEnabled }) {
    spec.attachRequired ??= true
    spec.podInfoOnMount ??= false
    spec.storageCapacity ??= false
    spec.fsGroupPolicy ??= 'ReadWriteOnceWithFSType'
    if ((spec.volumeLifecycleModes ?? []).length === 0) spec.volumeLifecycleModes = ['Persistent']
    spec.requiresRepublish ??= false
    if (isEnabled('SELinuxMountReadWriteOncePod')) spec.seLinuxMount ??= false
    if (isEnabled('VolumeLimitScaling')) spec.preventPodSchedulingIfMissing ??= false
  },
  prepareCreate({ metadata, spec }, { isEnabled }) {
    delete metadata.generation
    for (const [field, gate] of gatedFields) if (!isEnabled(gate)) delete spec[field]
  },
  prepareUpdate({ spec }, old, { isEnabled }) {
    for (const [field, gate] of gatedFields) {
      if (!isEnabled(gate) && old.spec[field] === undefined) delete spec[field]
    }
  },
  validate: ({ spec }, context) => validateSpec(spec, context),
  validateUpdate: (next, old, context) => [
    ...validateSpec(next.spec, context),
    ...immutable(fieldPath('spec.attachedRequired'), next.spec.attachRequired, old.spec.attachRequired),
    ...immutable(fieldPath('spec.volumeLifecycleModes'), next.spec.volumeLifecycleModes, old.spec.volumeLifecycleModes),
  ],
  warnings: ({ spec }, old) => {
    const { tokenRequests = [], serviceAccountTokenInSecrets } = spec
    const isChanged = old === undefined || !semanticEqual(old.spec.tokenRequests, tokenRequests)
    return isChanged && tokenRequests.length > 0 && serviceAccountTokenInSecrets === undefined
      ? [TOKENS_IN_ATTRIBUTES]
      : []
  },
  columns: [
    nameColumn,
    { name: 'AttachRequired', type: 'boolean', value: ({ spec }) => spec.attachRequired ?? true },
    { name: 'PodInfoOnMount', type: 'boolean', value: ({ spec }) => spec.podInfoOnMount ?? false },
    { name: 'StorageCapacity', type: 'boolean', value: ({ spec }) => spec.storageCapacity ?? false },
    { name: 'TokenRequests', value: ({ spec }) => audiencesText(spec.tokenRequests) },
    { name: 'RequiresRepublish', type: 'boolean', value: ({ spec }) => spec.requiresRepublish ?? false },
    { name: 'Modes', value: ({ spec }) => (spec.volumeLifecycleModes ?? []).join(',') || '<none>' },
    ageColumn,
  ],
  deleteAnswersObject: true,
  putNeedsVersion: true,
})

const TOKENS_IN_ATTRIBUTES =
  'spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes'

const groupPolicies = ['ReadWriteOnceWithFSType', 'File', 'None']
const lifecycleModes = ['Persistent', 'Ephemeral']
const MIN_UPDATE_PERIOD_SECONDS = 10

function validateSpec(spec: CSIDriverSpec, { isEnabled }: RuleContext): FieldError[] {
  const { fsGroupPolicy: policy, tokenRequests = [], nodeAllocatableUpdatePeriodSeconds: periodSeconds } = spec
  const inSecrets = spec.serviceAccountTokenInSecrets
  const mustBeThere = (field: string, value: boolean | undefined): FieldError[] =>
    value === undefined ? [fieldPath(`spec.${field}`).required()] : []
  return collectErrors(
    mustBeThere('attachedRequired', spec.attachRequired),
    mustBeThere('podInfoOnMount', spec.podInfoOnMount),
    mustBeThere('storageCapacity', spec.storageCapacity),
    policy !== undefined &&
      !groupPolicies.includes(policy) &&
      fieldPath('spec.fsGroupPolicy').notInSet(asJson(policy), groupPolicies),
    validateTokenRequests(tokenRequests),
    (spec.volumeLifecycleModes ?? [])
      .filter((mode) => !lifecycleModes.includes(mode))
      .map((mode) => fieldPath('spec.volumeLifecycleModes').notSupported(asJson(mode), lifecycleModes)),
    isEnabled('SELinuxMountReadWriteOncePod') && mustBeThere('seLinuxMount', spec.seLinuxMount),
    periodSeconds !== undefined &&
      periodSeconds < MIN_UPDATE_PERIOD_SECONDS &&
      fieldPath('spec.nodeAllocatableUpdatePeriodSeconds').invalid(
        periodSeconds,
        'must be greater than or equal to 10 seconds',
      ),
    inSecrets !== undefined &&
      tokenRequests.length === 0 &&
      fieldPath('spec.serviceAccountTokenInSecrets').invalid(
        inSecrets,
        'serviceAccountTokenInSecrets is set but no tokenRequests are specified',
      ),
    isEnabled('VolumeLimitScaling') && mustBeThere('preventPodSchedulingIfMissing', spec.preventPodSchedulingIfMissing),
  )
}

const MIN_TOKEN_SECONDS = 600
const MAX_TOKEN_SECONDS = 2 ** 32

function validateTokenRequests(requests: readonly TokenRequest[]): FieldError[] {
  const seen = new Set<string>()
  return fieldPath('spec.tokenRequests').each(requests, (path, { audience, expirationSeconds: seconds }) => {
    if (seen.has(audience)) return [path.child('audience').duplicate(audience)]
    seen.add(audience)
    if (seconds === undefined) return []
    const field = path.child('expirationSeconds')
    if (seconds < MIN_TOKEN_SECONDS) return [field.invalid(seconds, 'may not specify a duration less than 10 minutes')]
    return seconds > MAX_TOKEN_SECONDS
      ? [field.invalid(seconds, 'may not specify a duration larger than 2^32 seconds')]
      : []
  })
}

function audiencesText(requests: readonly TokenRequest[] | undefined): string {
  return requests === undefined ? '<unset>' : requests.map(({ audience }) => audience).join(',')
}
