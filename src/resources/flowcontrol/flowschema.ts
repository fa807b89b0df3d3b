/** The FlowSchema resource: assigns requests to a priority level. */
import {
  type FlowSchema,
  FlowSchemas,
  type FlowSchemaSpec,
  type NonResourcePolicyRule,
  type PolicyRulesWithSubjects,
  type ResourcePolicyRule,
  type Subject,
} from '#apis/flowcontrol/v1.ts'
import { mandatoryFlowSchemas } from '#apiserver/fairness/default-objects.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'
import { semanticEqual } from '#meta/object.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, nameIsLabel } from '#meta/validation/names.ts'

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

/** In matching order: the first match handles a request. */
function inOrderOfMatching(one: FlowSchema, other: FlowSchema): number {
  const first = (one.spec.matchingPrecedence ?? 0) - (other.spec.matchingPrecedence ?? 0)
  return first === 0 ? compareText(one.metadata.name ?? '', other.metadata.name ?? '') : first
}

function validateFlowSchema({ metadata: { name = '' }, spec, status }: FlowSchema): FieldError[] {
  const fixed = mandatoryFlowSchemas.find(({ metadata }) => metadata.name === name)
  const changed = fixed !== undefined && !semanticEqual(fixed.spec, spec)
  return collectErrors(
    validatePrecedence(name, spec.matchingPrecedence),
    validateSpec(spec),
    changed && fieldPath('spec').invalid(spec, `spec of '${name}' must equal the fixed value`),
    validateStatusConditions(status),
  )
}

function validatePrecedence(name: string, precedence: number): FieldError[] {
  const refuse = (detail: string): FieldError[] => [fieldPath('spec.matchingPrecedence').invalid(precedence, detail)]
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
  const field = fieldPath('spec.priorityLevelConfiguration.name')
  return collectErrors(
    method !== undefined &&
      !methods.includes(method.type) &&
      fieldPath('spec.distinguisherMethod.type').notInSet(method, methods),
    name === '' ? field.required('must reference a priority level') : field.check(name, dns1123Subdomain),
    fieldPath('spec.rules').each(rules, validateRule),
  )
}

function validateRule(path: FieldPath, rule: PolicyRulesWithSubjects): FieldError[] {
  const { resourceRules = [], nonResourceRules = [] } = rule
  const subjects = rule.subjects ?? []
  const field = path.child('subjects')
  return collectErrors(
    subjects.length === 0 && field.required('subjects must contain at least one value'),
    field.each(subjects, validateSubject),
    resourceRules.length + nonResourceRules.length === 0 &&
      path.required('at least one of resourceRules and nonResourceRules has to be non-empty'),
    path.child('resourceRules').each(resourceRules, validateResourceRule),
    path.child('nonResourceRules').each(nonResourceRules, validateNonResourceRule),
  )
}

/** The detail field of each subject kind. */
const subjectFields = [
  ['ServiceAccount', 'serviceAccount'],
  ['User', 'user'],
  ['Group', 'group'],
] as const

function validateSubject(path: FieldPath, subject: Subject): FieldError[] {
  const own = subjectFields.find(([kind]) => kind === subject.kind)?.[1]
  if (own === undefined) {
    const kinds = subjectFields.map(([kind]) => kind)
    return [path.child('kind').notInSet(asJson(subject.kind), kinds)]
  }
  const others = subjectFields.filter(([, field]) => field !== own && subject[field] !== undefined)
  return [
    ...validateSubjectField(path, subject, own),
    ...others.map(([kind, field]) =>
      path.child(field).forbidden(`${field} is forbidden when subject kind is not '${kind}'`),
    ),
  ]
}

function validateSubjectField(
  path: FieldPath,
  subject: Subject,
  own: 'serviceAccount' | 'user' | 'group',
): FieldError[] {
  const field = path.child(own)
  const value = subject[own]
  if (value === undefined) return [field.required(`${own} is required when subject kind is '${subject.kind}'`)]
  const errors = value.name === '' ? [field.child('name').required()] : []
  if (!('namespace' in value)) return errors
  const { name, namespace } = value
  if (name !== '' && name !== '*') errors.push(...field.child('name').check(name, dns1123Subdomain))
  return [
    ...errors,
    ...(namespace === ''
      ? [field.child('namespace').required('must specify namespace for service account')]
      : field.child('namespace').check(namespace, () => nameIsLabel(namespace, false))),
  ]
}

/** Must not be empty; a star must be alone. True if each element should be validated. */
function validateStars(
  path: FieldPath,
  values: readonly string[],
  text: { readonly empty: string; readonly others: string },
): { errors: FieldError[]; each: boolean } {
  if (values.length === 0) return { errors: [path.required(text.empty)], each: false }
  if (!values.includes('*')) return { errors: [], each: true }
  const detail = `if '*' is present, must not specify other ${text.others}`
  return { errors: values.length > 1 ? [path.invalid(values, detail)] : [], each: false }
}

const verbs = ['get', 'list', 'create', 'update', 'delete', 'deletecollection', 'patch', 'watch', 'proxy']

function validateVerbs(path: FieldPath, values: readonly string[]): FieldError[] {
  const field = path.child('verbs')
  const { errors, each } = validateStars(field, values, {
    empty: 'verbs must contain at least one value',
    others: 'verbs',
  })
  return each && values.some((verb) => !verbs.includes(verb)) ? [field.notInSet(values, verbs)] : errors
}

function validateNonResourceRule(path: FieldPath, rule: NonResourcePolicyRule): FieldError[] {
  const urls = rule.nonResourceURLs ?? []
  const field = path.child('nonResourceURLs')
  const { errors, each } = validateStars(field, urls, {
    empty: 'nonResourceURLs must contain at least one value',
    others: 'non-resource URLs',
  })
  return collectErrors(validateVerbs(path, rule.verbs ?? []), errors, each && field.each(urls, validateUrl))
}

function validateUrl(path: FieldPath, url: string): FieldError[] {
  const refuse = (detail: string): FieldError[] => [path.invalid(url, detail)]
  if (url === '') return refuse('must not be empty')
  if (url === '/') return []
  if (!url.startsWith('/')) return refuse('must start with slash')
  if (url.includes(' ')) return refuse('must not contain white-space')
  if (url.includes('//')) return refuse('must not contain double slash')
  const stars = url.split('*').length - 1
  return stars > 1 || (stars === 1 && !url.endsWith('/*')) ? refuse('wildcard can only do suffix matching') : []
}

function validateResourceRule(path: FieldPath, rule: ResourcePolicyRule): FieldError[] {
  const list = (name: 'apiGroups' | 'resources', one: string, others: string): FieldError[] =>
    validateStars(path.child(name), rule[name] ?? [], {
      empty: `resource rules must supply at least one ${one}`,
      others,
    }).errors
  return [
    ...validateVerbs(path, rule.verbs ?? []),
    ...list('apiGroups', 'api group', 'api groups'),
    ...list('resources', 'resource', 'resources'),
    ...validateNamespaces(path.child('namespaces'), rule),
  ]
}

const NAMESPACE_RULE = "each member of this list must be '*' or a DNS-1123 label; "

function validateNamespaces(path: FieldPath, { namespaces, clusterScope }: ResourcePolicyRule): FieldError[] {
  const list = namespaces ?? []
  if (list.length === 0 && clusterScope === true) return []
  const { errors, each } = validateStars(path, list, {
    empty: 'resource rules that are not cluster scoped must supply at least one namespace',
    others: 'namespaces',
  })
  if (!each) return errors
  return path.each(list, (path, namespace) =>
    nameIsLabel(namespace, false).map((complaint) => path.invalid(namespace, `${NAMESPACE_RULE}${complaint}`)),
  )
}

function danglingText({ status }: FlowSchema): string {
  const dangling = status?.conditions?.find(({ type }) => type === 'Dangling')
  return dangling === undefined ? '?' : (dangling.status ?? '')
}
