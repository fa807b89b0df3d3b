/** Reads the fields of roles in requests: rules that every API server accepts, within limits. All throw StatusError 400. */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import { badRequestError } from '#meta/status-errors.ts'
import { pathSegmentName } from '#meta/validation/names.ts'

import type { RoleSpec, Scope } from '../kinds/access.ts'

const MAX_RULES = 200
const MAX_VALUES = 200
const MAX_CHARACTERS = 253

export function scopeField(value: unknown): Scope {
  if (value === 'global' || value === 'cluster' || value === 'project') return value
  throw badRequestError('scope must be "global", "cluster" or "project"')
}

/** An invalid rule would keep the server from applying any role to the clusters. */
export function rulesField(value: unknown, scope: Scope): readonly PolicyRule[] {
  if (!Array.isArray(value) || value.length > MAX_RULES)
    throw badRequestError(`rules must be a list of at most ${MAX_RULES} rules`)
  return (value as unknown[]).map((one, at) => ruleOf(one, `rules[${at}]`, scope))
}

/** The name of a ClusterRole. */
export function inheritsField(value: unknown, scope: Scope): Pick<RoleSpec, 'inherits'> {
  if (value === undefined) return {}
  if (scope === 'global') throw badRequestError('roles of scope global cannot inherit')
  if (typeof value !== 'string' || value === '' || value.length > MAX_CHARACTERS || pathSegmentName(value).length > 0)
    throw badRequestError('inherits must be the name of a ClusterRole')
  return { inherits: value }
}

const LISTS = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'] as const

function ruleOf(value: unknown, path: string, scope: Scope): PolicyRule {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequestError(`${path} must be an object`)
  const fields = value as Readonly<Record<string, unknown>>
  const unknown = Object.keys(fields).find((name) => !LISTS.some((list) => list === name))
  if (unknown !== undefined) throw badRequestError(`${path} has the unknown field "${unknown.slice(0, 100)}"`)
  const rule = Object.fromEntries(
    LISTS.flatMap((name) => (fields[name] === undefined ? [] : [[name, textsOf(fields[name], `${path}.${name}`)]])),
  ) as unknown as PolicyRule
  checkForm(rule, path, scope)
  return rule
}

function checkForm(rule: Partial<PolicyRule>, path: string, scope: Scope): void {
  const { verbs = [], apiGroups = [], resources = [], nonResourceURLs = [] } = rule
  const isOfPaths = nonResourceURLs.length > 0
  if (verbs.length === 0) throw badRequestError(`${path}.verbs must not be empty`)
  if (isOfPaths === (apiGroups.length > 0 || resources.length > 0))
    throw badRequestError(`${path} must have either apiGroups and resources, or nonResourceURLs`)
  if (!isOfPaths && (apiGroups.length === 0 || resources.length === 0))
    throw badRequestError(`${path} must have apiGroups and resources`)
  if (isOfPaths && scope === 'project') throw badRequestError(`${path}: projects have no nonResourceURLs`)
}

function textsOf(value: unknown, path: string): string[] {
  const isText = (one: unknown): one is string => typeof one === 'string' && one.length <= MAX_CHARACTERS
  if (Array.isArray(value) && value.length <= MAX_VALUES && (value as unknown[]).every(isText)) return value as string[]
  throw badRequestError(`${path} must be a list of at most ${MAX_VALUES} texts`)
}
