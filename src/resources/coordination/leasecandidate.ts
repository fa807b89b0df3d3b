/** The LeaseCandidate resource: a candidate for a lease, with the versions that decide the election. */
import { LeaseCandidates as AlphaLeaseCandidates } from '#apis/coordination/v1alpha2.ts'
import { type LeaseCandidate, LeaseCandidates, type LeaseCandidateSpec } from '#apis/coordination/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from '#lib/semver.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { configMapKey } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'

import { OLDEST_EMULATION_VERSION, validateStrategy } from './strategy.ts'

export const leaseCandidate: Resource<LeaseCandidate> = defineResource<LeaseCandidate>({
  kind: LeaseCandidates,
  otherVersions: [{ kind: AlphaLeaseCandidates }],
  metadataRules: { plainFinalizers: true },
  // A trailing dash is valid in a key, so generateName needs no special rule.
  nameRule: (name) => configMapKey(name),
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => [
    ...validateSpec(next.spec),
    ...immutable(fieldPath('spec.leaseName'), next.spec.leaseName, old.spec.leaseName),
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

/** An invalid version counts as 0.0.0 from here on, as in upstream. */
function validateSpec(spec: LeaseCandidateSpec): FieldError[] {
  const { leaseName, binaryVersion, emulationVersion = '', strategy = '' } = spec
  const [binary, emulation] = [binaryVersion, emulationVersion].map(parseSemanticVersion)
  const notAVersion = 'must be a valid semantic version'
  const isOlder = compareSemanticVersions(binary ?? NO_VERSION, emulation ?? NO_VERSION) < 0
  return collectErrors(
    leaseName === '' && fieldPath('spec.leaseName').required(),
    emulationVersion !== '' &&
      emulation === undefined &&
      fieldPath('spec.emulationVersion').invalid(emulationVersion, notAVersion),
    binaryVersion === '' && fieldPath('spec.binaryVersion').required(),
    binaryVersion !== '' && binary === undefined && fieldPath('spec.binaryVersion').invalid(binaryVersion, notAVersion),
    binaryVersion !== '' &&
      emulationVersion !== '' &&
      isOlder &&
      fieldPath('spec.binaryVersion').invalid(binaryVersion, 'must be greater than or equal to `emulationVersion`'),
    validateCandidateStrategy(strategy, emulation ?? NO_VERSION),
  )
}

function validateCandidateStrategy(strategy: string, emulation: SemanticVersion): FieldError[] {
  if (strategy === '') return [fieldPath('spec.strategy').required()]
  const detail = "must be specified when `strategy` is 'OldestEmulationVersion'"
  const unknown = strategy === OLDEST_EMULATION_VERSION && compareSemanticVersions(emulation, NO_VERSION) === 0
  return collectErrors(unknown && fieldPath('spec.emulationVersion').required(detail), validateStrategy(strategy))
}
