/** kubectl api-resources: lists the resources of the server, each in one version. */
import type { DiscoveryResult, ServedKind } from '#client/discovery.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { apiVersionOf } from '#meta/kind.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { AT_FLAG } from '../past/moment-flags.ts'
import { TabWriter } from '../print/tabs.ts'
import { noPrinter, printerOf, printFlags } from '../printing.ts'

const STRUCTURED = ['json', 'yaml', 'kyaml']
const FORMATS = [...STRUCTURED, 'name', 'wide']

const { output, 'show-managed-fields': showManagedFields } = printFlags(FORMATS)

const FLAGS = {
  ...AT_FLAG,
  output,
  'show-managed-fields': showManagedFields,
  'api-group': flag(string, '', 'Show only resources of this API group.'),
  cached: flag(bool, false, 'Use the cached list of resources if there is one.'),
  categories: flag(strings, [], 'Show only resources that belong to all of these categories.'),
  namespaced: flag(bool, true, 'If true, show only namespaced resources; if false, only cluster-scoped ones.'),
  'no-headers': flag(bool, false, 'Omit the header line.'),
  'sort-by': flag(string, '', "Sort by 'name' or 'kind'. By default resources are sorted by API group and name."),
  verbs: flag(strings, [], 'Show only resources that support all of these verbs.'),
}

type ResourcesInvocation = Invocation<typeof FLAGS>

export const apiResources: Command = defineCommand({
  name: 'api-resources',
  use: '[flags] [options]',
  long: 'List the API resources that the server supports.',
  examples: `# List the supported resources
kubectl api-resources

# List them with more columns
kubectl api-resources -o wide

# Sort them by name
kubectl api-resources --sort-by=name

# List cluster-scoped resources
kubectl api-resources --namespaced=false

# List the resources of one API group
kubectl api-resources --api-group=rbac.authorization.k8s.io`,
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, session } = invocation
    if (args.length > 0) throw usageError(invocation, `unexpected arguments: [${args.join(' ')}]`)
    await session.config()
    if (flags.output !== '' && !isFormat(flags.output)) throw noPrinter(flags.output, FORMATS)
    if (!['', 'name', 'kind'].includes(flags['sort-by'])) {
      throw new KubectlError('--sort-by accepts only name or kind')
    }
    const mapper = await session.mapper()
    const found = await (flags.cached ? mapper.known() : mapper.freshKinds())
    const wanted = sorted(onePerResource(found.kinds).filter(filterOf(invocation)), flags['sort-by'])
    if (found.kinds.length > 0) await print(invocation, wanted)
    const missing = missingOf(found)
    if (missing !== undefined) throw missing
  },
})

/** Machine-readable formats may be in upper case. */
function isFormat(format: string): boolean {
  return FORMATS.includes(format) || STRUCTURED.includes(format.toLowerCase())
}

/** The resource in the preferred version of its group, or else in the first that has it. */
export function onePerResource(kinds: readonly ServedKind[]): ServedKind[] {
  const found = new Map<string, ServedKind>()
  for (const kind of kinds) {
    const name = `${kind.plural}.${kind.group}`
    if (!found.has(name) || kind.isPreferred) found.set(name, kind)
  }
  return [...found.values()]
}

function filterOf({ flags, changed }: ResourcesInvocation): (kind: ServedKind) => boolean {
  const { verbs, categories, namespaced, 'api-group': group } = flags
  return (kind) =>
    kind.verbs.length > 0 &&
    (!changed.has('api-group') || kind.group === group) &&
    (!changed.has('namespaced') || kind.namespaced === namespaced) &&
    verbs.every((verb) => kind.verbs.includes(verb)) &&
    categories.every((category) => kind.categories.includes(category))
}

/** Equal rows are sorted by name, and otherwise keep the order of the server. */
function sorted(kinds: readonly ServedKind[], by: string): ServedKind[] {
  const key = ({ plural, kind, group }: ServedKind): string => (by === 'name' ? plural : by === 'kind' ? kind : group)
  const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
  return kinds.toSorted((one, other) => compare(key(one), key(other)) || compare(one.plural, other.plural))
}

async function print(invocation: ResourcesInvocation, kinds: readonly ServedKind[]): Promise<void> {
  const { flags, stdout } = invocation
  if (STRUCTURED.includes(flags.output.toLowerCase())) {
    const printer = await printerOf(invocation, { formats: FORMATS, keepOrder: true })
    printer.print(listOf(kinds), stdout)
    return
  }
  if (flags.output === 'name') {
    stdout.write(kinds.map(({ plural, group }) => `${plural}${group === '' ? '' : `.${group}`}\n`).join(''))
    return
  }
  const isWide = flags.output === 'wide'
  const tabs = new TabWriter()
  const headers = ['NAME', 'SHORTNAMES', 'APIVERSION', 'NAMESPACED', 'KIND', ...(isWide ? ['VERBS', 'CATEGORIES'] : [])]
  const rows = kinds.map((kind) => cellsOf(kind, isWide))
  for (const cells of flags['no-headers'] ? rows : [headers, ...rows]) tabs.write(`${cells.join('\t')}\n`)
  stdout.write(tabs.flush())
}

function cellsOf(one: ServedKind, isWide: boolean): string[] {
  const { plural, shortNames, namespaced, kind, verbs, categories } = one
  const cells = [plural, shortNames.join(','), apiVersionOf(one), String(namespaced), kind]
  return isWide ? [...cells, verbs.join(','), categories.join(',')] : cells
}

/** In the field order of Go's struct. */
function listOf(kinds: readonly ServedKind[]): JsonObject {
  const resources = kinds.map(({ plural, singular, namespaced, group, version, kind, verbs, ...more }): JsonObject => ({
    name: plural,
    singularName: singular,
    namespaced,
    ...(group !== '' && { group }),
    version,
    kind,
    verbs: [...verbs],
    ...(more.shortNames.length > 0 && { shortNames: [...more.shortNames] }),
    ...(more.categories.length > 0 && { categories: [...more.categories] }),
  }))
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: '',
    resources: kinds.length === 0 ? null : resources,
  }
}

/** Unavailable aggregated servers make the list incomplete. */
function missingOf({ unknown }: DiscoveryResult): KubectlError | undefined {
  if (unknown.length === 0) return undefined
  const each = [...unknown].sort().map((version) => `${version}: stale GroupVersion discovery: ${version}`)
  return new KubectlError(`unable to retrieve the complete list of server APIs: ${each.join(', ')}`)
}
