/** Parses the audit policy file (audit.k8s.io/v1 Policy). Unknown fields cause warnings; errors reject the file. */
import { type GroupResources, LEVELS, type Policy, type PolicyRule, STAGES } from '#apiserver/audit/policy.ts'
import { defineConfig, readConfig } from '#meta/config-kind.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

const STRUCTS = {
  'v1.Policy': {
    metadata: 'runtime.Unknown',
    rules: '[]v1.PolicyRule',
    omitStages: '[]v1.Stage',
    omitManagedFields: 'bool',
  },
  'v1.PolicyRule': {
    level: 'v1.Level',
    users: '[]string',
    userGroups: '[]string',
    verbs: '[]string',
    resources: '[]v1.GroupResources',
    namespaces: '[]string',
    nonResourceURLs: '[]string',
    omitStages: '[]v1.Stage',
    omitManagedFields: '*bool',
  },
  'v1.GroupResources': { group: 'string', resources: '[]string', resourceNames: '[]string' },
} as const

const POLICY = defineConfig(['Policy', 'v1.Policy'], ['audit.k8s.io/v1'], STRUCTS)

/** The kind that upstream assumes for a file without one, before it rejects it. */
const UNVERSIONED = { group: 'audit.k8s.io', version: '__internal', kind: 'Policy' }

/** Throws upstream's texts. */
export function parseAuditPolicy(source: string, warn: (message: string) => void): Policy {
  const warning = (message: string): void =>
    warn(`Audit policy contains errors, falling back to lenient decoding: ${message}`)
  let read
  try {
    const kinds = [POLICY, { ...POLICY, apiVersions: ['audit.k8s.io/__internal'] }]
    read = readConfig(source, kinds, { defaultKind: UNVERSIONED, warn: warning })
  } catch (cause) {
    throw new Error(`failed decoding: ${(cause as Error).message}`, { cause })
  }
  if (read.gvk.version === UNVERSIONED.version) {
    throw new Error('unknown group version field audit.k8s.io/__internal, Kind=Policy in policy')
  }
  const { rules = [], omitStages = [], omitManagedFields = false } = read.value as Partial<Policy>
  const errors = [...stageErrors(fieldPath('omitStages'), omitStages), ...rules.flatMap(ruleErrors)]
  if (errors.length > 0) throw new Error(aggregateText(errors))
  if (rules.length === 0) throw new Error('loaded illegal policy with 0 rules')
  return { rules, omitStages, omitManagedFields }
}

function ruleErrors(rule: PolicyRule, at: number): FieldError[] {
  const path = fieldPath('rules').index(at)
  const { nonResourceURLs = [], resources = [], namespaces = [], omitStages = [] } = rule
  const both = 'rules cannot apply to both regular resources and non-resource URLs'
  const isBoth = nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)
  return collectErrors(
    levelErrors(path.child('level'), rule.level ?? ''),
    path.child('nonResourceURLs').each(nonResourceURLs, urlErrors),
    resources.flatMap((one) => resourceErrors(path.child('resources'), one)),
    stageErrors(path.child('omitStages'), omitStages),
    isBoth && path.child('nonResourceURLs').invalid(asJson(nonResourceURLs), both),
  )
}

function levelErrors(path: FieldPath, level: string): FieldError[] {
  if (level === '') return [path.required()]
  return LEVELS.some((known) => known === level) ? [] : [path.notSupported(level, LEVELS)]
}

function urlErrors(path: FieldPath, url: string): FieldError[] {
  if (url === '*') return []
  return collectErrors(
    !url.startsWith('/') && path.invalid(url, "non-resource URL rules must begin with a '/' character"),
    url.slice(0, -1).includes('*') &&
      path.invalid(url, "non-resource URL wildcards '*' must be the final character of the rule"),
  )
}

function resourceErrors(
  path: FieldPath,
  { group = '', resources = [], resourceNames = [] }: GroupResources,
): FieldError[] {
  const complaints = group === '' || group === '*' ? [] : dns1123Subdomain(group)
  const names = 'using resourceNames requires at least one resource'
  return collectErrors(
    complaints.length !== 0 && path.child('group').invalid(group, complaints.join(',')),
    resourceNames.length > 0 &&
      resources.length === 0 &&
      path.child('resourceNames').invalid(asJson(resourceNames), names),
  )
}

function stageErrors(path: FieldPath, stages: readonly string[]): FieldError[] {
  return path.each(
    stages,
    (path, stage) =>
      !STAGES.some((known) => known === stage) && path.invalid(stage, `allowed stages are ${STAGES.join(',')}`),
  )
}
