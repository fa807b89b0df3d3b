/** kubectl top: what pods and nodes use of processor and memory, as the metrics API has it. */
import type { Node, Pod } from '#apis/core/v1.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { parseSelector } from '#meta/labels.ts'
import { epochMsOf } from '#meta/time.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { ALL_NAMESPACES_FLAG, FIELD_SELECTOR_FLAG, SELECTOR_FLAG } from '../flag-sets.ts'
import { queryText, type Rest } from '../rest.ts'
import { requireSubcommand } from '../subcommand.ts'
import { listAll, resourcePath } from '../surroundings.ts'
import type { NodeMetrics, PodMetrics, Usage } from '../usage-table.ts'

const SHARED: { readonly [K in 'no-headers' | 'show-swap' | 'use-protocol-buffers']: Flag<boolean> } = {
  'no-headers': flag(bool, false, 'Print no headers'),
  'show-swap': flag(bool, false, 'Show what is used of swap too.'),
  'use-protocol-buffers': flag(
    bool,
    true,
    'Ask the metrics API for protocol buffers. JSON is asked for here either way.',
  ),
}

const SORT_FLAG = { 'sort-by': flag(string, '', "Sort by 'cpu' or 'memory', the largest first.") }

const POD_FLAGS = {
  ...SHARED,
  ...SORT_FLAG,
  ...SELECTOR_FLAG,
  ...FIELD_SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  containers: flag(bool, false, 'Show each container of a pod.'),
  sum: flag(bool, false, 'Show what all of them use together'),
}

const NODE_FLAGS = {
  ...SHARED,
  ...SORT_FLAG,
  ...SELECTOR_FLAG,
  'show-capacity': flag(bool, false, 'Percentages are of what nodes have, not of what pods may use.'),
}

type PodInvocation = Invocation<typeof POD_FLAGS>
type NodeInvocation = Invocation<typeof NODE_FLAGS>

const METRICS = 'metrics.k8s.io/v1beta1'

const pod: Command = defineCommand({
  name: 'pod',
  aliases: ['pods', 'po'],
  use: '[NAME | -l label] [options]',
  long: 'Show what pods use. It takes a while after a pod was made until there are metrics of it.',
  examples: `# All pods of the namespace
kubectl top pod

# The containers of a pod
kubectl top pod POD_NAME --containers`,
  flags: POD_FLAGS,
  async run(invocation) {
    const { flags, session, stdout, stderr } = invocation
    const name = nameIn(invocation, 'pod [NAME | -l label]')
    checkSorting(flags['sort-by'])
    if (name !== '' && (flags.selector !== '' || flags['field-selector'] !== '')) {
      throw new KubectlError('only one of NAME or selector can be provided')
    }
    checkSelector(flags.selector)
    const { namespace } = await session.namespace()
    const rest = await session.rest()
    await requireMetrics(rest)
    const where = flags['all-namespaces'] ? '' : namespace
    const selecting = { labels: flags.selector, fields: flags['field-selector'] }
    const path = resourcePath(`${METRICS}/pods`, where, name)
    const metrics =
      name === ''
        ? await listAll<PodMetrics & { metadata: object }>(rest, path, 0, selecting)
        : [await rest.json<PodMetrics>(path)]
    if (metrics.length === 0) {
      await explainNothing(invocation, rest, namespace)
      const text = flags['all-namespaces'] ? 'No resources found' : `No resources found in ${namespace} namespace.`
      stderr.write(`${text}\n`)
      return
    }
    const { podTable } = await import('../usage-table.ts')
    const table = podTable(metrics, {
      ...wishesOf(flags),
      withContainers: flags.containers,
      withNamespace: flags['all-namespaces'],
      withSum: flags.sum,
    })
    stdout.write(table)
  },
})

const node: Command = defineCommand({
  name: 'node',
  aliases: ['nodes', 'no'],
  use: '[NAME | -l label] [options]',
  long: 'Show what nodes use.',
  examples: `# All nodes
kubectl top node

# A node
kubectl top node NODE_NAME`,
  flags: NODE_FLAGS,
  async run(invocation) {
    const { flags, session, stdout } = invocation
    const name = nameIn(invocation, 'node [NAME | -l label]')
    checkSorting(flags['sort-by'])
    if (name !== '' && flags.selector !== '') throw new KubectlError('only one of NAME or --selector can be provided')
    checkSelector(flags.selector)
    const rest = await session.rest()
    await requireMetrics(rest)
    const read = async <T extends { metadata: object }>(resource: string): Promise<T[]> => {
      const path = resourcePath(resource, '', name)
      return name === '' ? listAll<T>(rest, path, 0, { labels: flags.selector }) : [await rest.json<T>(path)]
    }
    const metrics = await read<NodeMetrics & { metadata: object }>(`${METRICS}/nodes`)
    if (metrics.length === 0) throw new KubectlError('metrics not available yet')
    const available = new Map(
      (await read<Node>('v1/nodes')).map((one) => [one.metadata.name ?? '', totalOf(one, flags)]),
    )
    const { nodeTable } = await import('../usage-table.ts')
    stdout.write(nodeTable(metrics, available, wishesOf(flags)))
  },
})

export const top: Command = defineCommand({
  name: 'top',
  use: '[flags] [options]',
  long: 'Show how much processor and memory pods and nodes use, as the metrics API of the cluster has it: the figures that autoscalers go by.',
  flags: {},
  commands: [
    { name: 'node', aliases: ['nodes', 'no'], short: 'Show what nodes use', load: () => Promise.resolve(node) },
    { name: 'pod', aliases: ['pods', 'po'], short: 'Show what pods use', load: () => Promise.resolve(pod) },
  ],
  run: requireSubcommand,
})

function nameIn(invocation: PodInvocation | NodeInvocation, use: string): string {
  const { args } = invocation
  if (args.length > 1) throw usageError(invocation, use)
  return args[0] ?? ''
}

function checkSorting(sortBy: string): void {
  if (sortBy !== '' && sortBy !== 'cpu' && sortBy !== 'memory') {
    throw new KubectlError('--sort-by accepts only cpu or memory')
  }
}

function checkSelector(text: string): void {
  try {
    parseSelector(text)
  } catch (cause) {
    throw new KubectlError(asError(cause).message, { cause })
  }
}

async function requireMetrics(rest: Rest): Promise<void> {
  const { groups = [] } = await rest.json<{ groups?: { name: string; versions?: { version: string }[] }[] }>('/apis')
  const found = groups.find(({ name }) => name === 'metrics.k8s.io')
  if (!found?.versions?.some(({ version }) => version === 'v1beta1'))
    throw new KubectlError('Metrics API not available')
}

function wishesOf(flags: {
  readonly 'no-headers': boolean
  readonly 'sort-by': string
  readonly 'show-swap': boolean
}): { noHeaders: boolean; sortBy: string; showSwap: boolean } {
  return { noHeaders: flags['no-headers'], sortBy: flags['sort-by'], showSwap: flags['show-swap'] }
}

function totalOf({ status }: Node, flags: NodeInvocation['flags']): Usage {
  const swap = status?.nodeInfo?.swap?.capacity
  const total = (flags['show-capacity'] ? status?.capacity : status?.allocatable) ?? {}
  return { ...(total as Usage), ...(swap !== undefined && { swap: String(swap) }) }
}

/** Metrics come two minutes after the pod at the latest. */
const DELAY_MS = 120_000

/** Throws KubectlError when there are pods, and no metrics of them. */
async function explainNothing({ flags, clock }: PodInvocation, rest: Rest, namespace: string): Promise<void> {
  const query = { labelSelector: flags.selector, fieldSelector: flags['field-selector'] }
  const { items = [] } = await rest.json<{ items?: Pod[] }>(resourcePath('v1/pods', namespace) + queryText(query))
  if (items.length === 0) return
  const old = items.find(({ metadata }) => clock.now() - epochMsOf(metadata.creationTimestamp ?? '') > DELAY_MS)
  if (old === undefined) throw new KubectlError('metrics not available yet')
  const { formatDuration } = await import('#lib/flags/go-literals.ts')
  const ageMs = clock.now() - epochMsOf(old.metadata.creationTimestamp ?? '')
  const { name = '', namespace: where = '' } = old.metadata
  throw new KubectlError(`Metrics not available for pod ${where}/${name}, age: ${formatDuration(ageMs)}`)
}
