/** The APIService resource: names the server of a group version, which is this server or one behind a Service. */
import { type APIService, type APIServiceCondition, APIServices } from '#apis/apiregistration/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { goQuote } from '#lib/go/text.ts'
import { timeOf } from '#meta/time.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label, dns1123Subdomain, type NameRule, pathSegmentName, portNumber } from '#meta/validation/names.ts'

const DEFAULT_PORT = 443
const MAX_GROUP_PRIORITY = 20_000
const MAX_VERSION_PRIORITY = 1000

export const apiService: Resource<APIService> = defineResource<APIService>({
  kind: APIServices,
  metadataRules: { update: ['change', 'whole'], plainFinalizers: true },
  storagePrefix: 'apiregistration.k8s.io/apiservices',
  nameRuleFor: nameRuleOf,
  applyDefaults({ spec: { service } }) {
    if (service !== undefined) service.port ??= DEFAULT_PORT
  },
  prepareCreate(object, { clock }) {
    if (object.spec.service !== undefined) return
    const condition: APIServiceCondition = {
      type: 'Available',
      status: 'True',
      lastTransitionTime: timeOf(clock.now()),
      reason: 'Local',
      message: 'Local APIServices are always available',
    }
    object.status = { conditions: [condition] }
  },
  validate: validateApiService,
  status: { validateUpdate: ({ status }) => (status?.conditions ?? []).flatMap(validateCondition) },
  columns: [
    nameColumn,
    {
      name: 'Service',
      value: ({ spec: { service } }) =>
        service === undefined ? 'Local' : `${service.namespace ?? ''}/${service.name ?? ''}`,
    },
    { name: 'Available', value: availableText },
    ageColumn,
  ],
  putNeedsVersion: true,
})

function validateApiService(object: APIService): FieldError[] {
  const { group = '', version = '', groupPriorityMinimum, versionPriority } = object.spec
  return collectErrors(
    group === '' &&
      version !== 'v1' &&
      fieldPath('spec.group').required('only v1 may have an empty group and it better be legacy kube'),
    group !== '' && fieldPath('spec.group').check(group, dns1123Subdomain),
    fieldPath('spec.version').check(version, dns1035Label),
    validatePriority(fieldPath('spec.groupPriorityMinimum'), groupPriorityMinimum, MAX_GROUP_PRIORITY),
    validatePriority(fieldPath('spec.versionPriority'), versionPriority, MAX_VERSION_PRIORITY),
    object.spec.service === undefined ? validateLocal(object) : validateRemote(object),
  )
}

function nameRuleOf({ spec: { group = '', version = '' } }: APIService): NameRule {
  const wanted = `${version}.${group}`
  return (name) => {
    const complaints = pathSegmentName(name)
    if (complaints.length > 0 || name === wanted) return complaints
    return [`must be \`spec.version+"."+spec.group\`: ${goQuote(wanted)}`]
  }
}

function validatePriority(path: FieldPath, value: number, limit: number): FieldError[] {
  return value > 0 && value <= limit ? [] : [path.invalid(value, `must be positive and less than ${limit}`)]
}

function validateLocal({ spec: { caBundle = '', insecureSkipTLSVerify: insecure } }: APIService): FieldError[] {
  const size = `${Buffer.byteLength(caBundle, 'base64')} bytes`
  return collectErrors(
    caBundle !== '' && fieldPath('spec.caBundle').invalid(size, 'local APIServices may not have a caBundle'),
    insecure === true &&
      fieldPath('spec.insecureSkipTLSVerify').invalid(insecure, 'local APIServices may not have insecureSkipTLSVerify'),
  )
}

function validateRemote({ spec }: APIService): FieldError[] {
  const { caBundle = '', insecureSkipTLSVerify: insecure } = spec
  const { namespace = '', name = '', port = 0 } = spec.service ?? {}
  const complaints = portNumber(port)
  return collectErrors(
    namespace === '' && fieldPath('spec.service.namespace').required(),
    name === '' && fieldPath('spec.service.name').required(),
    complaints.length > 0 &&
      fieldPath('spec.service.port').invalid(port, `port is not valid: ${complaints.join(', ')}`),
    insecure === true &&
      caBundle !== '' &&
      fieldPath('spec.insecureSkipTLSVerify').invalid(insecure, 'may not be true if caBundle is present'),
  )
}

const statuses = ['True', 'False', 'Unknown']

function validateCondition({ status }: APIServiceCondition, at: number): FieldError[] {
  if (statuses.includes(status)) return []
  return [fieldPath('status.conditions').index(at).child('status').notSupported(asJson(status), statuses)]
}

function availableText({ status }: APIService): string {
  const condition = status?.conditions?.find(({ type }) => type === 'Available')
  if (condition === undefined) return 'Unknown'
  const { status: value, reason = '' } = condition
  return value === 'True' || reason === '' ? value : `${value} (${reason})`
}
