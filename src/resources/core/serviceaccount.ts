/** The ServiceAccount resource: the identity of a pod at the API. */
import { type ServiceAccount, ServiceAccounts } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'

const ENFORCE_MOUNTABLE_SECRETS = 'kubernetes.io/enforce-mountable-secrets'

export const serviceAccount: Resource<ServiceAccount> = defineResource<ServiceAccount>({
  kind: ServiceAccounts,
  metadataRules: { update: ['change', 'whole'] },
  prepareCreate: keepSecretNames,
  prepareUpdate: keepSecretNames,
  warnings(next, old) {
    if (!hasAnnotation(next) || (old !== undefined && hasAnnotation(old))) return []
    const advice = 'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets'
    return [`metadata.annotations[${ENFORCE_MOUNTABLE_SECRETS}]: ${advice}`]
  },
  columns: [nameColumn, ageColumn],
  deleteAnswersObject: true,
})

/** Secrets are in the same namespace, so only their names matter. */
function keepSecretNames(object: ServiceAccount): void {
  object.secrets &&= object.secrets.map(({ name }) => (name === undefined ? {} : { name }))
}

function hasAnnotation({ metadata }: ServiceAccount): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, ENFORCE_MOUNTABLE_SECRETS)
}
