/** LeaseCandidate: somebody who would lead, and the versions by which one of them is chosen. */
import { LeaseCandidates as AlphaLeaseCandidates } from '#apis/coordination/v1alpha2.ts'
import { type LeaseCandidate, LeaseCandidates, type LeaseCandidateSpec } from '#apis/coordination/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from '#lib/semver.ts'
import { type FieldError, invalid, required } from '#meta/validation/field-error.ts'
import { configMapKey } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'

import { OLDEST_EMULATION_VERSION, validateStrategy } from './strategy.ts'

export const leaseCandidate: Resource<LeaseCandidate> = defineResource<LeaseCandidate>({
  kind: LeaseCandidates,
  otherVersions: [{ kind: AlphaLeaseCandidates }],
  metadataRules: { plainFinalizers: true },
  // A trailing dash is fine in a key, so a generateName needs no rule of its own.
  nameRule: (name) => configMapKey(name),
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => [
    ...validateSpec(next.spec),
    ...immutable('spec.leaseName', next.spec.leaseName, old.spec.leaseName),
  ],
  columns: [
    nameColumn,
    { name: 'LeaseName', value: ({ spec }) => spec.leaseName },
    { name: 'BinaryVersion', value: ({ spec }) => spec.binaryVersion },
    { name: 'EmulationVersion', value: ({ spec }) => spec.emulationVersion ?? '' },
    ageColumn,
  ],
  putCreates: true,
  putNeedsVersion: true,
})

const NO_VERSION: SemanticVersion = { numbers: [0n, 0n, 0n], preRelease: [] }

/** A text that is no version counts as 0.0.0 in what follows, as it does upstream. */
function validateSpec(spec: LeaseCandidateSpec): FieldError[] {
  const { leaseName, binaryVersion, emulationVersion = '', strategy = '' } = spec
  const [binary, emulation] = [binaryVersion, emulationVersion].map(parseSemanticVersion)
  const notAVersion = 'must be a valid semantic version'
  const isOlder = compareSemanticVersions(binary ?? NO_VERSION, emulation ?? NO_VERSION) < 0
  return [
    ...(leaseName === '' ? [required('spec.leaseName')] : []),
    ...(emulationVersion !== '' && emulation === undefined
      ? [invalid('spec.emulationVersion', emulationVersion, notAVersion)]
      : []),
    ...(binaryVersion === '' ? [required('spec.binaryVersion')] : []),
    ...(binaryVersion !== '' && binary === undefined
      ? [invalid('spec.binaryVersion', binaryVersion, notAVersion)]
      : []),
    ...(binaryVersion !== '' && emulationVersion !== '' && isOlder
      ? [invalid('spec.binaryVersion', binaryVersion, 'must be greater than or equal to `emulationVersion`')]
      : []),
    ...validateCandidateStrategy(strategy, emulation ?? NO_VERSION),
  ]
}

function validateCandidateStrategy(strategy: string, emulation: SemanticVersion): FieldError[] {
  if (strategy === '') return [required('spec.strategy')]
  const detail = "must be specified when `strategy` is 'OldestEmulationVersion'"
  const unknown = strategy === OLDEST_EMULATION_VERSION && compareSemanticVersions(emulation, NO_VERSION) === 0
  return [...(unknown ? [required('spec.emulationVersion', detail)] : []), ...validateStrategy(strategy)]
}
