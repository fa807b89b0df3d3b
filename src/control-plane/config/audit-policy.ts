/** The audit policy file (audit.k8s.io/v1 Policy). Fields that do not belong are warned of; what is wrong is refused. */
import { type GroupResources, LEVELS, type Policy, type PolicyRule, STAGES } from '#apiserver/audit/policy.ts'
import {
  anything,
  defineConfig,
  flag,
  listOf,
  optional,
  readConfig,
  scalar,
  struct,
  texts,
  text,
} from '#meta/config-kind.ts'
import {
  aggregateText,
  asJson,
  type FieldError,
  index,
  invalid,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain } from '#meta/validation/names.ts'

const GROUP_RESOURCES = struct('v1.GroupResources', { group: text, resources: texts, resourceNames: texts })
const STAGE_LIST = listOf(scalar('string', 'v1.Stage'))

const RULE = struct('v1.PolicyRule', {
  level: scalar('string', 'v1.Level'),
  users: texts,
  userGroups: texts,
  verbs: texts,
  resources: listOf(GROUP_RESOURCES),
  namespaces: texts,
  nonResourceURLs: texts,
  omitStages: STAGE_LIST,
  omitManagedFields: optional(flag),
})

const POLICY = defineConfig('Policy', ['audit.k8s.io/v1'], 'v1.Policy', {
  metadata: anything,
  rules: listOf(RULE),
  omitStages: STAGE_LIST,
  omitManagedFields: flag,
})

/** What upstream takes a file for that does not say what it is, before it refuses it. */
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
  const errors = [...stageErrors('omitStages', omitStages), ...rules.flatMap(ruleErrors)]
  if (errors.length > 0) throw new Error(aggregateText(errors))
  if (rules.length === 0) throw new Error('loaded illegal policy with 0 rules')
  return { rules, omitStages, omitManagedFields }
}

function ruleErrors(rule: PolicyRule, at: number): FieldError[] {
  const path = index('rules', at)
  const { nonResourceURLs = [], resources = [], namespaces = [], omitStages = [] } = rule
  const both = 'rules cannot apply to both regular resources and non-resource URLs'
  const isBoth = nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0)
  return [
    ...levelErrors(`${path}.level`, rule.level ?? ''),
    ...nonResourceURLs.flatMap((url, each) => urlErrors(index(`${path}.nonResourceURLs`, each), url)),
    ...resources.flatMap((one) => resourceErrors(`${path}.resources`, one)),
    ...stageErrors(`${path}.omitStages`, omitStages),
    ...(isBoth ? [invalid(`${path}.nonResourceURLs`, asJson(nonResourceURLs), both)] : []),
  ]
}

function levelErrors(field: string, level: string): FieldError[] {
  if (level === '') return [required(field)]
  return LEVELS.some((known) => known === level) ? [] : [notSupported(field, level, LEVELS)]
}

function urlErrors(field: string, url: string): FieldError[] {
  if (url === '*') return []
  return [
    ...(url.startsWith('/') ? [] : [invalid(field, url, "non-resource URL rules must begin with a '/' character")]),
    ...(url.slice(0, -1).includes('*')
      ? [invalid(field, url, "non-resource URL wildcards '*' must be the final character of the rule")]
      : []),
  ]
}

function resourceErrors(
  path: string,
  { group = '', resources = [], resourceNames = [] }: GroupResources,
): FieldError[] {
  const complaints = group === '' || group === '*' ? [] : dns1123Subdomain(group)
  const names = 'using resourceNames requires at least one resource'
  return [
    ...(complaints.length === 0 ? [] : [invalid(`${path}.group`, group, complaints.join(','))]),
    ...(resourceNames.length > 0 && resources.length === 0
      ? [invalid(`${path}.resourceNames`, asJson(resourceNames), names)]
      : []),
  ]
}

function stageErrors(path: string, stages: readonly string[]): FieldError[] {
  return stages.flatMap((stage, at) =>
    STAGES.some((known) => known === stage)
      ? []
      : [invalid(index(path, at), stage, `allowed stages are ${STAGES.join(',')}`)],
  )
}
