/** ResourceClaim: devices that pods share, asked for by what they must be able to do. */
import { type ResourceClaim, ResourceClaims, type ResourceClaimStatus } from '#apis/resource/v1.ts'
import { type ResourceClaim as OldResourceClaim, ResourceClaims as OldResourceClaims } from '#apis/resource/v1beta1.ts'
import { ResourceClaims as NearResourceClaims } from '#apis/resource/v1beta2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import type { FieldError } from '#meta/validation/field-error.ts'
import { immutable } from '#meta/validation/rules.ts'

import { adminAccessField, requireAdminNamespace } from './admin-access.ts'
import {
  defaultClaimSpec,
  defaultOldClaimSpec,
  defaultTolerations,
  dropGatedClaimFields,
  validateClaimSpec,
} from './claim-spec.ts'
import { prepareClaimStatus, validateClaimStatus } from './claim-status.ts'

export const resourceClaim: Resource<ResourceClaim> = defineResource<ResourceClaim>({
  kind: ResourceClaims,
  metadataRules: { update: ['whole', 'change'] },
  otherVersions: [
    { kind: NearResourceClaims, applyDefaults: applyClaimDefaults },
    {
      kind: OldResourceClaims,
      applyDefaults(object) {
        const { spec, status } = object as OldResourceClaim
        defaultOldClaimSpec(spec)
        defaultResults(status)
      },
    },
  ],
  applyDefaults: applyClaimDefaults,
  prepareCreate: ({ spec }, context) => dropGatedClaimFields(spec, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropGatedClaimFields(spec, old.spec, context),
  validate: ({ spec }, context) => validateClaimSpec('spec', spec, context),
  validateUpdate: (next, old) => immutable('spec', next.spec, old.spec),
  // Nothing is reserved: this is where rules may look at other objects.
  async allocate(next, old, context) {
    const field = old === undefined ? adminAccessField(next.spec) : newAdminResult(next, old)
    const faults = (): FieldError[] =>
      old === undefined ? validateClaimSpec('spec', next.spec, context) : validateClaimStatus(next, old)
    await requireAdminNamespace({ kind: ResourceClaims, object: next, field, faults }, context)
    return async () => undefined
  },
  status: {
    prepareUpdate(next, old, context) {
      prepareClaimStatus(next, old, context)
    },
    validateUpdate: validateClaimStatus,
  },
  columns: [nameColumn, { name: 'State', value: stateText }, ageColumn],
  deleteAnswersObject: true,
})

function applyClaimDefaults(object: KubeObject): void {
  const { spec, status } = object as ResourceClaim
  defaultClaimSpec(spec)
  defaultResults(status)
}

function defaultResults(status: ResourceClaimStatus | undefined): void {
  for (const { tolerations } of status?.allocation?.devices.results ?? []) defaultTolerations(tolerations)
}

/** The first result with admin access in a claim that had none. */
function newAdminResult(next: ResourceClaim, old: ResourceClaim): string | undefined {
  const find = ({ status }: ResourceClaim): number =>
    (status?.allocation?.devices.results ?? []).findIndex(({ adminAccess }) => adminAccess === true)
  const at = find(next)
  return at < 0 || find(old) >= 0 ? undefined : `status.allocation.devices.results[${at}].adminAccess`
}

function stateText({ metadata, status }: ResourceClaim): string {
  const isDeleted = metadata.deletionTimestamp !== undefined
  const states = isDeleted ? ['deleted'] : []
  if (status?.allocation === undefined) return isDeleted ? 'deleted' : 'pending'
  states.push('allocated')
  if ((status.reservedFor ?? []).length > 0) states.push('reserved')
  return states.join(',')
}
