/** kubectl create role and clusterrole: create rules for resources or for non-resource URLs. */
import { flag } from '#lib/flags/flags.ts'
import type { Kind } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'
import { compareText, goQuote } from '#lib/go/text.ts'

import type { Command, Invocation } from '../command.ts'
import { ExitError, KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'

const GROUP = 'rbac.authorization.k8s.io'
const API_VERSION = `${GROUP}/v1`

const RESOURCE_VERBS: ReadonlySet<string> = new Set(
  '* get delete list create update patch watch proxy deletecollection use bind escalate impersonate'.split(' '),
)
const PATH_VERBS: ReadonlySet<string> = new Set(['*', 'get', 'post', 'put', 'delete', 'patch', 'head', 'options'])

/** Verbs that only certain resources support, as `resource.group`. */
const SPECIAL_VERBS: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['use', new Set(['podsecuritypolicies.policy', 'podsecuritypolicies.extensions'])],
  ['bind', new Set([`roles.${GROUP}`, `clusterroles.${GROUP}`])],
  ['escalate', new Set([`roles.${GROUP}`, `clusterroles.${GROUP}`])],
  ['impersonate', new Set(['users.', 'serviceaccounts.', 'groups.', 'userextras.authentication.k8s.io'])],
])

const RULE_FLAGS = {
  verb: flag(strings, [], 'Verbs that the role allows.'),
  resource: flag(strings, [], 'Resources of the rule, as resource.group/subresource.'),
  'resource-name': flag(stringArray, [], 'Names of objects that the rule is limited to; may be repeated.'),
}

/** A resource as typed and as served. */
interface Resource {
  readonly group: string
  readonly resource: string
  readonly subresource: string
  readonly isServed: boolean
}

interface Rule {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}

/** `*` replaces all other verbs; `--resource=*` means all resources. */
export function verbsOf(given: readonly string[]): string[] {
  return given.includes('*') ? ['*'] : [...new Set(given)]
}

function typedResources(given: readonly string[]): string[] {
  return given.includes('*') ? given.slice(0, given.indexOf('*')).concat('*').slice(-1) : [...given]
}

function partsOf(typed: string): { group: string; resource: string; subresource: string } {
  const slash = typed.indexOf('/')
  const [name, subresource] = slash < 0 ? [typed, ''] : [typed.slice(0, slash), typed.slice(slash + 1)]
  const dot = name.indexOf('.')
  return { resource: dot < 0 ? name : name.slice(0, dot), group: dot < 0 ? '' : name.slice(dot + 1), subresource }
}

/** A short name that several resources have is resolved, and upstream's warning is printed. */
async function resourcesOf({ session }: Pick<Invocation, 'session'>, given: readonly string[]): Promise<Resource[]> {
  if (given.length === 0) return []
  const mapper = await session.mapper()
  const resources: Resource[] = []
  for (const typed of typedResources(given)) {
    const { resource, group, subresource } = partsOf(typed)
    const found = ['', '*'].includes(resource)
      ? undefined
      : await mapper.find(group === '' ? resource : `${resource}.${group}`)
    if (found === undefined) resources.push({ resource, group, subresource, isServed: false })
    else resources.push({ resource: found.plural, group: found.group, subresource, isServed: true })
  }
  return resources
}

/** Throws KubectlError. */
export function checkResources(resources: readonly Resource[], verbs: readonly string[]): void {
  for (const { resource, group, isServed } of resources) {
    if (resource === '') throw new KubectlError('resource must be specified if apiGroup/subresource specified')
    if (resource === '*') return
    const special = verbs.filter((verb) => SPECIAL_VERBS.has(verb))
    const wrong = special.find((verb) => SPECIAL_VERBS.get(verb)?.has(`${resource}.${group}`) !== true)
    if (wrong !== undefined) {
      throw new KubectlError(`can not perform '${wrong}' on '${resource}' in group '${group}'`)
    }
    if (isServed || special.length > 0) continue
    const where = group === '' ? '' : ` in group ${goQuote(group)}`
    throw new ExitError(1, `the server doesn't have a resource type ${goQuote(resource)}${where}`)
  }
}

/** One rule for each group in alphabetical order, then one for non-resource URLs. */
export function rulesOf(
  verbs: readonly string[],
  resources: readonly Resource[],
  { names = [], urls = [] }: { readonly names?: readonly string[]; readonly urls?: readonly string[] },
): Rule[] {
  const groups = [...new Set(resources.map(({ group }) => group))].sort(compareText)
  const rules: Rule[] = groups.map((group) => {
    const inGroup = resources.filter((each) => each.group === group)
    const texts = inGroup.map(({ resource, subresource }) =>
      subresource === '' ? resource : `${resource}/${subresource}`,
    )
    return {
      verbs,
      apiGroups: [group],
      resources: [...new Set(texts)],
      ...(names.length > 0 && { resourceNames: [...new Set(names)] }),
    }
  })
  return urls.length === 0 ? rules : [...rules, { verbs, nonResourceURLs: [...new Set(urls)] }]
}

function warnOfVerbs({ stderr }: Pick<Invocation, 'stderr'>, verbs: readonly string[]): void {
  for (const verb of verbs.filter((each) => !RESOURCE_VERBS.has(each))) {
    stderr.write(`Warning: '${verb}' is not a standard resource verb\n`)
  }
}

export const role: Command = defineGenerator({
  name: 'role',
  use: 'NAME --verb=verb --resource=resource.group/subresource [--resource-name=resourcename] [--dry-run=server|client|none] [options]',
  long: 'Create a role with one rule.',
  flags: RULE_FLAGS,
  async make(name, invocation) {
    const { flags } = invocation
    const verbs = verbsOf(flags.verb)
    if (verbs.length === 0) throw new KubectlError('at least one verb must be specified')
    warnOfVerbs(invocation, verbs)
    if (flags.resource.length === 0) throw new KubectlError('at least one resource must be specified')
    const resources = await resourcesOf(invocation, flags.resource)
    checkResources(resources, verbs)
    const rules = rulesOf(verbs, resources, { names: flags['resource-name'] })
    return { ...beginning(API_VERSION, 'Role'), metadata: { name }, rules }
  },
})

/** Parses `a=b,c=d` without the quoting of list flags. */
const labelMap: Kind<ReadonlyMap<string, string>> = {
  type: 'mapStringString',
  hint: 'mapStringString',
  parse: (text) =>
    new Map(
      text
        .split(',')
        .filter((pair) => pair !== '')
        .map((pair): [string, string] => {
          const at = pair.indexOf('=')
          if (at < 0) throw new Error('malformed pair, expect string=string')
          return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
        }),
    ),
  print: (value) => [...value].map(([key, item]) => `${key}=${item}`).join(','),
  plain: [],
  join: (before, next) => new Map([...before, ...next]),
  read: () => new Map(),
}

export const clusterrole: Command = defineGenerator({
  name: 'clusterrole',
  use: 'NAME --verb=verb --resource=resource.group [--resource-name=resourcename] [--dry-run=server|client|none] [options]',
  long: 'Create a cluster role.',
  flags: {
    ...RULE_FLAGS,
    'non-resource-url': flag(strings, [], 'Non-resource URL that the role allows; a trailing * matches any suffix.'),
    'aggregation-rule': flag(labelMap, new Map(), 'Label selector of the cluster roles to aggregate.'),
  },
  async make(name, invocation) {
    const { flags } = invocation
    const { 'non-resource-url': urls, 'resource-name': names, resource, verb } = flags
    const start = beginning(API_VERSION, 'ClusterRole')
    const labels = [...flags['aggregation-rule']].sort(([one], [other]) => compareText(one, other))
    if (labels.length > 0) {
      if ([urls, names, resource, verb].some((given) => given.length > 0)) {
        throw new KubectlError(
          'aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames',
        )
      }
      const aggregationRule = { clusterRoleSelectors: [{ matchLabels: Object.fromEntries(labels) }] }
      return { ...start, metadata: { name }, rules: null, aggregationRule }
    }
    const verbs = verbsOf(verb)
    if (verbs.length === 0) throw new KubectlError('at least one verb must be specified')
    if (resource.length === 0 && urls.length === 0) {
      throw new KubectlError('one of resource or nonResourceURL must be specified')
    }
    const resources = await resourcesOf(invocation, resource)
    if (resources.length > 0) warnOfVerbs(invocation, verbs)
    checkResources(resources, verbs)
    checkUrls(urls, verbs)
    return { ...start, metadata: { name }, rules: rulesOf(verbs, resources, { names, urls }) }
  },
})

/** Throws KubectlError. */
function checkUrls(urls: readonly string[], verbs: readonly string[]): void {
  const wrong = urls.length === 0 ? undefined : verbs.find((verb) => !PATH_VERBS.has(verb))
  if (wrong !== undefined) throw new KubectlError(`invalid verb: '${wrong}' for nonResourceURL`)
  for (const url of urls.filter((each) => each !== '*')) {
    if (!url.startsWith('/')) throw new KubectlError('nonResourceURL should start with /')
    if (url.slice(0, -1).includes('*')) {
      throw new KubectlError("nonResourceURL only supports wildcard matches when '*' is at the end")
    }
  }
}
