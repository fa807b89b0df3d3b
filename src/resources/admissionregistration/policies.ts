/** Validation rules that all admission policies and their bindings share. */
import type {
  MatchResources,
  NamedRuleWithOperations,
  ParamKind,
  ParamRef,
  Variable,
} from '#apis/admissionregistration/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { labelSelectorText, validateLabelSelector } from '#meta/label-selector.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label, dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'
import { requiredOneOfSet } from '#meta/validation/rules.ts'
import type { AdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'

import { isBlank } from '../expressions.ts'
import { defaultRule, matchPolicies, validateRuleWithOperations } from './match-rules.ts'

export function defaultMatchResources(match: MatchResources | undefined): void {
  if (match === undefined) return
  match.matchPolicy ??= 'Equivalent'
  match.namespaceSelector ??= {}
  match.objectSelector ??= {}
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) defaultRule(rule)
}

export function validateParamKind(path: FieldPath, { apiVersion = '', kind = '' }: ParamKind): FieldError[] {
  const field = path.child('kind')
  const complaints = dns1035Label(kind.toLowerCase())
  const detail = `may have mixed case, but should otherwise match: ${complaints.join(',')}`
  return collectErrors(
    validateApiVersion(path.child('apiVersion'), apiVersion),
    kind === '' ? field.required() : complaints.length > 0 && field.invalid(kind, detail),
  )
}

function validateApiVersion(path: FieldPath, text: string): FieldError[] {
  if (text === '') return [path.required()]
  const parts = text === '/' ? [''] : text.split('/')
  if (parts.length > 2) return [path.invalid(text, `unexpected GroupVersion string: ${text}`)]
  const version = parts.at(-1) ?? ''
  const group = parts.length === 2 ? (parts[0] ?? '') : ''
  const joined = (value: string, complaints: readonly string[]): FieldError[] =>
    complaints.length === 0 ? [] : [path.invalid(value, complaints.join(','))]
  return collectErrors(
    group !== '' && joined(group, dns1123Subdomain(group)),
    version === '' ? path.invalid(text, 'version must be specified') : joined(version, dns1035Label(version)),
  )
}

export function paramKindText(kind: ParamKind | undefined): string {
  return kind === undefined ? '<unset>' : `${kind.apiVersion ?? ''}/${kind.kind ?? ''}`
}

export function validateMatchResources(path: FieldPath, match: MatchResources | undefined): FieldError[] {
  if (match === undefined) return []
  const rules = (name: 'resourceRules' | 'excludeResourceRules'): FieldError[] =>
    path.child(name).each(match[name], validateNamedRule)
  const selector = (name: 'namespaceSelector' | 'objectSelector'): FieldError[] =>
    match[name] === undefined ? [path.child(name).required()] : validateLabelSelector(path.child(name), match[name])
  return [
    ...requiredOneOfSet(path.child('matchPolicy'), match.matchPolicy, matchPolicies),
    ...selector('namespaceSelector'),
    ...selector('objectSelector'),
    ...rules('resourceRules'),
    ...rules('excludeResourceRules'),
  ]
}

/** The match constraints of a policy, which are required. */
export function validateMatchConstraints(path: FieldPath, match: MatchResources | undefined): FieldError[] {
  if (match === undefined) return [path.required()]
  const none = (match.resourceRules ?? []).length === 0
  return collectErrors(validateMatchResources(path, match), none && path.child('resourceRules').required())
}

/** Without DELETE, because a deleted object cannot be mutated. */
const mutatingOperations = ['*', 'CREATE', 'UPDATE', 'CONNECT']

export function validateMutatingOperations(path: FieldPath, match: MatchResources | undefined): FieldError[] {
  return (match?.resourceRules ?? [])
    .flatMap(({ operations = [] }) => operations)
    .filter((operation) => !mutatingOperations.includes(operation))
    .map((operation) => path.child('resourceRules.operations').notInSet(asJson(operation), mutatingOperations))
}

function validateNamedRule(path: FieldPath, rule: NamedRuleWithOperations): FieldError[] {
  const names = rule.resourceNames ?? []
  const field = path.child('resourceNames')
  const isRepeated = createRepetition()
  return [
    ...field.each(names, (path, name) =>
      collectErrors(path.check(name, pathSegmentName), isRepeated(name) && path.duplicate(name)),
    ),
    ...validateRuleWithOperations(path, rule),
  ]
}

const reservedWords = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** Each variable is declared for those after it. */
export function validateVariables(
  path: FieldPath,
  variables: readonly Variable[] = [],
  compiler: AdmissionCompiler,
): FieldError[] {
  return path.each(variables, (path, { name, expression }) => {
    const isIdentifier = /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !reservedWords.has(name)
    const nameErrors = isBlank(name)
      ? [path.child('name').required('name is not specified')]
      : isIdentifier
        ? []
        : [path.child('name').invalid(name, 'must be a valid CEL identifier')]
    if (isBlank(expression)) {
      return [...nameErrors, path.child('expression').required('expression is not specified')]
    }
    const compiled = compiler.declareVariable(name, expression)
    return [...nameErrors, ...expressionErrors(path.child('expression'), compiled)]
  })
}

export function validatePolicyName(name = ''): FieldError[] {
  return name === ''
    ? [fieldPath('spec.policyName').required()]
    : fieldPath('spec.policyName').check(name, dns1123Subdomain)
}

const notFoundActions = ['Deny', 'Allow']

export function validateParamRef(path: FieldPath, ref: ParamRef | undefined): FieldError[] {
  if (ref === undefined) return []
  const { name = '', selector, parameterNotFoundAction: action = '' } = ref
  const exclusive = 'name and selector are mutually exclusive'
  const both = name !== '' && selector !== undefined
  const field = path.child('parameterNotFoundAction')
  return collectErrors(
    name !== '' && path.child('name').check(name, pathSegmentName),
    both && path.child('name').forbidden(exclusive),
    validateLabelSelector(path.child('selector'), selector),
    both && path.child('selector').forbidden(exclusive),
    name === '' && selector === undefined && path.required('one of name or selector must be specified'),
    action === '' && field.required(),
    action !== '' && !notFoundActions.includes(action) && field.notSupported(asJson(action), notFoundActions),
  )
}

/** The scope of the params is unknown here: a star means any namespace. */
export function paramRefText(ref: ParamRef | undefined): string {
  const { name = '', namespace = '', selector } = ref ?? {}
  if (name !== '') return `${namespace || '*'}/${name}`
  return selector === undefined ? '<unset>' : labelSelectorText(selector)
}
