/** What admission policies share, and what the bindings that put them to use share. */
import type {
  MatchResources,
  NamedRuleWithOperations,
  ParamKind,
  ParamRef,
  Variable,
} from '#apis/admissionregistration/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { labelSelectorText, validateLabelSelector } from '#meta/label-selector.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notInSet,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { dns1035Label, dns1123Subdomain, pathSegmentName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'
import type { AdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'

import { isBlank } from '../expressions.ts'
import { defaultRule, matchPolicies, oneOfSet, validateRuleWithOperations } from './match-rules.ts'

export function defaultMatchResources(match: MatchResources | undefined): void {
  if (match === undefined) return
  match.matchPolicy ??= 'Equivalent'
  match.namespaceSelector ??= {}
  match.objectSelector ??= {}
  for (const rule of [...(match.resourceRules ?? []), ...(match.excludeResourceRules ?? [])]) defaultRule(rule)
}

/** A value that must be there and must be known, of a field whose values upstream lists sorted. */
export function requiredOneOfSet(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined ? [required(field)] : oneOfSet(field, value, supported)
}

export function validateParamKind(path: string, { apiVersion = '', kind = '' }: ParamKind): FieldError[] {
  const field = child(path, 'kind')
  const complaints = dns1035Label(kind.toLowerCase())
  const detail = `may have mixed case, but should otherwise match: ${complaints.join(',')}`
  return [
    ...validateApiVersion(child(path, 'apiVersion'), apiVersion),
    ...(kind === '' ? [required(field)] : complaints.length > 0 ? [invalid(field, kind, detail)] : []),
  ]
}

function validateApiVersion(field: string, text: string): FieldError[] {
  if (text === '') return [required(field)]
  const parts = text === '/' ? [''] : text.split('/')
  if (parts.length > 2) return [invalid(field, text, `unexpected GroupVersion string: ${text}`)]
  const version = parts.at(-1) ?? ''
  const group = parts.length === 2 ? (parts[0] ?? '') : ''
  const joined = (value: string, complaints: readonly string[]): FieldError[] =>
    complaints.length === 0 ? [] : [invalid(field, value, complaints.join(','))]
  return [
    ...(group === '' ? [] : joined(group, dns1123Subdomain(group))),
    ...(version === '' ? [invalid(field, text, 'version must be specified')] : joined(version, dns1035Label(version))),
  ]
}

export function paramKindText(kind: ParamKind | undefined): string {
  return kind === undefined ? '<unset>' : `${kind.apiVersion ?? ''}/${kind.kind ?? ''}`
}

export function validateMatchResources(path: string, match: MatchResources | undefined): FieldError[] {
  if (match === undefined) return []
  const rules = (name: 'resourceRules' | 'excludeResourceRules'): FieldError[] =>
    (match[name] ?? []).flatMap((rule, at) => validateNamedRule(index(child(path, name), at), rule))
  const selector = (name: 'namespaceSelector' | 'objectSelector'): FieldError[] =>
    match[name] === undefined ? [required(child(path, name))] : validateLabelSelector(child(path, name), match[name])
  return [
    ...requiredOneOfSet(child(path, 'matchPolicy'), match.matchPolicy, matchPolicies),
    ...selector('namespaceSelector'),
    ...selector('objectSelector'),
    ...rules('resourceRules'),
    ...rules('excludeResourceRules'),
  ]
}

/** Of a policy, which must say what it is about. */
export function validateMatchConstraints(path: string, match: MatchResources | undefined): FieldError[] {
  if (match === undefined) return [required(path)]
  const none = (match.resourceRules ?? []).length === 0
  return [...validateMatchResources(path, match), ...(none ? [required(child(path, 'resourceRules'))] : [])]
}

/** What is going is not there to be changed. */
const mutatingOperations = ['*', 'CREATE', 'UPDATE', 'CONNECT']

export function validateMutatingOperations(path: string, match: MatchResources | undefined): FieldError[] {
  return (match?.resourceRules ?? [])
    .flatMap(({ operations = [] }) => operations)
    .filter((operation) => !mutatingOperations.includes(operation))
    .map((operation) => notInSet(`${path}.resourceRules.operations`, asJson(operation), mutatingOperations))
}

function validateNamedRule(path: string, rule: NamedRuleWithOperations): FieldError[] {
  const names = rule.resourceNames ?? []
  const field = child(path, 'resourceNames')
  const isRepeated = createRepetition()
  return [
    ...names.flatMap((name, at) => [
      ...complaining(index(field, at), name, pathSegmentName(name)),
      ...(isRepeated(name) ? [duplicate(index(field, at), name)] : []),
    ]),
    ...validateRuleWithOperations(path, rule),
  ]
}

const reservedWords = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
)

/** Each is declared for those that follow it. */
export function validateVariables(
  field: string,
  variables: readonly Variable[] = [],
  compiler: AdmissionCompiler,
): FieldError[] {
  return variables.flatMap(({ name, expression }, at) => {
    const path = index(field, at)
    const isIdentifier = /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !reservedWords.has(name)
    const nameErrors = isBlank(name)
      ? [required(child(path, 'name'), 'name is not specified')]
      : isIdentifier
        ? []
        : [invalid(child(path, 'name'), name, 'must be a valid CEL identifier')]
    if (isBlank(expression)) {
      return [...nameErrors, required(child(path, 'expression'), 'expression is not specified')]
    }
    const compiled = compiler.declareVariable(name, expression)
    return [...nameErrors, ...expressionErrors(child(path, 'expression'), compiled)]
  })
}

export function validatePolicyName(name = ''): FieldError[] {
  return name === '' ? [required('spec.policyName')] : complaining('spec.policyName', name, dns1123Subdomain(name))
}

const notFoundActions = ['Deny', 'Allow']

export function validateParamRef(path: string, ref: ParamRef | undefined): FieldError[] {
  if (ref === undefined) return []
  const { name = '', selector, parameterNotFoundAction: action = '' } = ref
  const exclusive = 'name and selector are mutually exclusive'
  const both = name !== '' && selector !== undefined
  const field = child(path, 'parameterNotFoundAction')
  return [
    ...(name === '' ? [] : complaining(child(path, 'name'), name, pathSegmentName(name))),
    ...(both ? [forbidden(child(path, 'name'), exclusive)] : []),
    ...validateLabelSelector(child(path, 'selector'), selector),
    ...(both ? [forbidden(child(path, 'selector'), exclusive)] : []),
    ...(name === '' && selector === undefined ? [required(path, 'one of name or selector must be specified')] : []),
    ...(action === '' ? [required(field)] : []),
    ...(action === '' || notFoundActions.includes(action)
      ? []
      : [notSupported(field, asJson(action), notFoundActions)]),
  ]
}

/** Whether parameters have a namespace cannot be told from here: a star stands for any. */
export function paramRefText(ref: ParamRef | undefined): string {
  const { name = '', namespace = '', selector } = ref ?? {}
  if (name !== '') return `${namespace || '*'}/${name}`
  return selector === undefined ? '<unset>' : labelSelectorText(selector)
}
