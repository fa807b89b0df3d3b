/** The ResourceClaim resource: devices for pods, requested by their properties. */
import { type ResourceClaim, ResourceClaims, type ResourceClaimStatus } from '#apis/resource/v1.ts'
import { type ResourceClaim as OldResourceClaim, ResourceClaims as OldResourceClaims } from '#apis/resource/v1beta1.ts'
import { ResourceClaims as NearResourceClaims } from '#apis/resource/v1beta2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { invalidError } from '#meta/status-errors.ts'
import { fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable } from '#meta/validation/rules.ts'

import { adminAccessField, adminNamespaceErrors } from './admin-access.ts'
import { type Authorize, statusAccessErrors } from './claim-access.ts'
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
  validate: ({ spec }, context) => validateClaimSpec(fieldPath('spec'), spec, context),
  validateUpdate: (next, old) => immutable(fieldPath('spec'), next.spec, old.spec),
  allocate: allocateFor(undefined),
  status: {
    prepareUpdate(next, old, context) {
      prepareClaimStatus(next, old, context)
    },
    validateUpdate: validateClaimStatus,
  },
  columns: [nameColumn, { name: 'State', value: stateText }, ageColumn],
  deleteAnswersObject: true,
})

/** Without an authorizer, every user who may write the status may write all of it. */
export function defineResourceClaim(ask: Authorize | undefined): Resource<ResourceClaim> {
  return { ...resourceClaim, allocate: allocateFor(ask) }
}

/** Reserves nothing: this hook may read other objects and call the authorizer. */
function allocateFor(ask: Authorize | undefined): NonNullable<Resource<ResourceClaim>['allocate']> {
  return async (next, old, context) => {
    const field = old === undefined ? adminAccessField(next.spec) : newAdminResult(next, old)
    const errors = [
      ...(await adminNamespaceErrors(next, field, context)),
      ...(old === undefined || ask === undefined ? [] : await statusAccessErrors(ask, [next, old], context)),
    ]
    if (errors.length === 0) return async () => undefined
    // Other errors are in the same answer.
    const faults =
      old === undefined ? validateClaimSpec(fieldPath('spec'), next.spec, context) : validateClaimStatus(next, old)
    throw invalidError(ResourceClaims, next.metadata.name ?? '', [...errors, ...faults])
  }
}

function applyClaimDefaults(object: KubeObject): void {
  const { spec, status } = object as ResourceClaim
  defaultClaimSpec(spec)
  defaultResults(status)
}

function defaultResults(status: ResourceClaimStatus | undefined): void {
  for (const { tolerations } of status?.allocation?.devices.results ?? []) defaultTolerations(tolerations)
}

/** The first result with admin access, in a claim that had none. */
function newAdminResult(next: ResourceClaim, old: ResourceClaim): FieldPath | undefined {
  const find = ({ status }: ResourceClaim): number =>
    (status?.allocation?.devices.results ?? []).findIndex(({ adminAccess }) => adminAccess === true)
  const at = find(next)
  return at < 0 || find(old) >= 0 ? undefined : fieldPath(`status.allocation.devices.results[${at}].adminAccess`)
}

function stateText({ metadata, status }: ResourceClaim): string {
  const isDeleted = metadata.deletionTimestamp !== undefined
  const states = isDeleted ? ['deleted'] : []
  if (status?.allocation === undefined) return isDeleted ? 'deleted' : 'pending'
  states.push('allocated')
  if ((status.reservedFor ?? []).length > 0) states.push('reserved')
  return states.join(',')
}
