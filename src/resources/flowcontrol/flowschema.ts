/** FlowSchema: which requests belong together and which priority level they have. */
import {
  type FlowSchema,
  FlowSchemas,
  type FlowSchemaSpec,
  type NonResourcePolicyRule,
  type PolicyRulesWithSubjects,
  type ResourcePolicyRule,
  type Subject,
} from '#apis/flowcontrol/v1.ts'
import { mandatoryFlowSchemas } from '#apiserver/bootstrap/flow-control.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go-text.ts'
import { semanticEqual } from '#meta/object.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  index,
  invalid,
  notInSet,
  required,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain, nameIsLabel } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { keepUid, validateStatusConditions } from './conditions.ts'

const DEFAULT_PRECEDENCE = 1000
const MAX_PRECEDENCE = 10_000

export const flowSchema: Resource<FlowSchema> = defineResource<FlowSchema>({
  kind: FlowSchemas,
  metadataRules: { update: ['whole'] },
  generation: 'spec',
  applyDefaults({ spec }) {
    spec.matchingPrecedence ||= DEFAULT_PRECEDENCE
  },
  validate: validateFlowSchema,
  status: { prepareUpdate: keepUid, validateUpdate: ({ status }) => validateStatusConditions(status) },
  rowOrder: inOrderOfMatching,
  columns: [
    nameColumn,
    { name: 'PriorityLevel', value: ({ spec }) => spec.priorityLevelConfiguration.name },
    { name: 'MatchingPrecedence', value: ({ spec }) => spec.matchingPrecedence },
    { name: 'DistinguisherMethod', value: ({ spec }) => spec.distinguisherMethod?.type ?? '<none>' },
    ageColumn,
    { name: 'MissingPL', value: danglingText },
  ],
})

/** As requests meet them: the first that matches takes a request. */
function inOrderOfMatching(one: FlowSchema, other: FlowSchema): number {
  const first = (one.spec.matchingPrecedence ?? 0) - (other.spec.matchingPrecedence ?? 0)
  return first === 0 ? compareText(one.metadata.name ?? '', other.metadata.name ?? '') : first
}

function validateFlowSchema({ metadata: { name = '' }, spec, status }: FlowSchema): FieldError[] {
  const fixed = mandatoryFlowSchemas.find(({ metadata }) => metadata.name === name)
  const changed = fixed !== undefined && !semanticEqual(fixed.spec, spec)
  return [
    ...validatePrecedence(name, spec.matchingPrecedence),
    ...validateSpec(spec),
    ...(changed ? [invalid('spec', spec, `spec of '${name}' must equal the fixed value`)] : []),
    ...validateStatusConditions(status),
  ]
}

function validatePrecedence(name: string, precedence: number): FieldError[] {
  const refuse = (detail: string): FieldError[] => [invalid('spec.matchingPrecedence', precedence, detail)]
  if (precedence <= 0) return refuse('must be a positive value')
  if (precedence > MAX_PRECEDENCE) return refuse(`must not be greater than ${MAX_PRECEDENCE}`)
  if (precedence > 1 || name === 'exempt') return []
  return refuse("only the schema named 'exempt' may have matchingPrecedence 1")
}

const methods = ['ByNamespace', 'ByUser']

function validateSpec({
  distinguisherMethod: method,
  priorityLevelConfiguration,
  rules,
}: FlowSchemaSpec): FieldError[] {
  const { name } = priorityLevelConfiguration
  const field = 'spec.priorityLevelConfiguration.name'
  return [
    ...(method === undefined || methods.includes(method.type)
      ? []
      : [notInSet('spec.distinguisherMethod.type', method, methods)]),
    ...(name === ''
      ? [required(field, 'must reference a priority level')]
      : complaining(field, name, dns1123Subdomain(name))),
    ...(rules ?? []).flatMap((rule, at) => validateRule(index('spec.rules', at), rule)),
  ]
}

function validateRule(path: string, rule: PolicyRulesWithSubjects): FieldError[] {
  const { resourceRules = [], nonResourceRules = [] } = rule
  const subjects = rule.subjects ?? []
  const field = child(path, 'subjects')
  return [
    ...(subjects.length === 0 ? [required(field, 'subjects must contain at least one value')] : []),
    ...subjects.flatMap((subject, at) => validateSubject(index(field, at), subject)),
    ...(resourceRules.length + nonResourceRules.length === 0
      ? [required(path, 'at least one of resourceRules and nonResourceRules has to be non-empty')]
      : []),
    ...resourceRules.flatMap((one, at) => validateResourceRule(index(child(path, 'resourceRules'), at), one)),
    ...nonResourceRules.flatMap((one, at) => validateNonResourceRule(index(child(path, 'nonResourceRules'), at), one)),
  ]
}

/** The field that says more about a subject of each kind. */
const subjectFields = [
  ['ServiceAccount', 'serviceAccount'],
  ['User', 'user'],
  ['Group', 'group'],
] as const

function validateSubject(path: string, subject: Subject): FieldError[] {
  const own = subjectFields.find(([kind]) => kind === subject.kind)?.[1]
  if (own === undefined) {
    const kinds = subjectFields.map(([kind]) => kind)
    return [notInSet(child(path, 'kind'), asJson(subject.kind), kinds)]
  }
  const others = subjectFields.filter(([, field]) => field !== own && subject[field] !== undefined)
  return [
    ...validateSubjectField(path, subject, own),
    ...others.map(([kind, field]) =>
      forbidden(child(path, field), `${field} is forbidden when subject kind is not '${kind}'`),
    ),
  ]
}

function validateSubjectField(path: string, subject: Subject, own: 'serviceAccount' | 'user' | 'group'): FieldError[] {
  const field = child(path, own)
  const value = subject[own]
  if (value === undefined) return [required(field, `${own} is required when subject kind is '${subject.kind}'`)]
  const errors = value.name === '' ? [required(child(field, 'name'))] : []
  if (!('namespace' in value)) return errors
  const { name, namespace } = value
  if (name !== '' && name !== '*') errors.push(...complaining(child(field, 'name'), name, dns1123Subdomain(name)))
  return [
    ...errors,
    ...(namespace === ''
      ? [required(child(field, 'namespace'), 'must specify namespace for service account')]
      : complaining(child(field, 'namespace'), namespace, nameIsLabel(namespace, false))),
  ]
}

/** Must hold something; a star must be alone. True when it is worth while to look at each. */
function validateStars(
  field: string,
  values: readonly string[],
  text: { readonly empty: string; readonly others: string },
): { errors: FieldError[]; each: boolean } {
  if (values.length === 0) return { errors: [required(field, text.empty)], each: false }
  if (!values.includes('*')) return { errors: [], each: true }
  const detail = `if '*' is present, must not specify other ${text.others}`
  return { errors: values.length > 1 ? [invalid(field, values, detail)] : [], each: false }
}

const verbs = ['get', 'list', 'create', 'update', 'delete', 'deletecollection', 'patch', 'watch', 'proxy']

function validateVerbs(path: string, values: readonly string[]): FieldError[] {
  const field = child(path, 'verbs')
  const { errors, each } = validateStars(field, values, {
    empty: 'verbs must contain at least one value',
    others: 'verbs',
  })
  return each && values.some((verb) => !verbs.includes(verb)) ? [notInSet(field, values, verbs)] : errors
}

function validateNonResourceRule(path: string, rule: NonResourcePolicyRule): FieldError[] {
  const urls = rule.nonResourceURLs ?? []
  const field = child(path, 'nonResourceURLs')
  const { errors, each } = validateStars(field, urls, {
    empty: 'nonResourceURLs must contain at least one value',
    others: 'non-resource URLs',
  })
  return [
    ...validateVerbs(path, rule.verbs ?? []),
    ...errors,
    ...(each ? urls.flatMap((url, at) => validateUrl(index(field, at), url)) : []),
  ]
}

function validateUrl(field: string, url: string): FieldError[] {
  const refuse = (detail: string): FieldError[] => [invalid(field, url, detail)]
  if (url === '') return refuse('must not be empty')
  if (url === '/') return []
  if (!url.startsWith('/')) return refuse('must start with slash')
  if (url.includes(' ')) return refuse('must not contain white-space')
  if (url.includes('//')) return refuse('must not contain double slash')
  const stars = url.split('*').length - 1
  return stars > 1 || (stars === 1 && !url.endsWith('/*')) ? refuse('wildcard can only do suffix matching') : []
}

function validateResourceRule(path: string, rule: ResourcePolicyRule): FieldError[] {
  const list = (name: 'apiGroups' | 'resources', one: string, others: string): FieldError[] =>
    validateStars(child(path, name), rule[name] ?? [], {
      empty: `resource rules must supply at least one ${one}`,
      others,
    }).errors
  return [
    ...validateVerbs(path, rule.verbs ?? []),
    ...list('apiGroups', 'api group', 'api groups'),
    ...list('resources', 'resource', 'resources'),
    ...validateNamespaces(child(path, 'namespaces'), rule),
  ]
}

const NAMESPACE_RULE = "each member of this list must be '*' or a DNS-1123 label; "

function validateNamespaces(field: string, { namespaces, clusterScope }: ResourcePolicyRule): FieldError[] {
  const list = namespaces ?? []
  if (list.length === 0 && clusterScope === true) return []
  const { errors, each } = validateStars(field, list, {
    empty: 'resource rules that are not cluster scoped must supply at least one namespace',
    others: 'namespaces',
  })
  if (!each) return errors
  return list.flatMap((namespace, at) =>
    nameIsLabel(namespace, false).map((complaint) =>
      invalid(index(field, at), namespace, `${NAMESPACE_RULE}${complaint}`),
    ),
  )
}

function danglingText({ status }: FlowSchema): string {
  const dangling = status?.conditions?.find(({ type }) => type === 'Dangling')
  return dangling === undefined ? '?' : (dangling.status ?? '')
}
