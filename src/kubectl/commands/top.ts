/** kubectl top: shows CPU and memory usage of pods and nodes from the metrics API. */
import type { Node, Pod } from '#apis/core/v1.ts'
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { parseSelector } from '#meta/labels.ts'
import { epochMsOf } from '#meta/time.ts'

import { type Command, defineCommand, defineGroup, type Invocation, row, usageError } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { ALL_NAMESPACES_FLAG, FIELD_SELECTOR_FLAG, SELECTOR_FLAG } from '../flag-sets.ts'
import { AT_FLAG } from '../past/moment-flags.ts'
import { listAll, resourcePath } from '../related-objects.ts'
import { queryText, type Rest } from '../session/rest.ts'
import type { NodeMetrics, PodMetrics, Usage } from '../top/usage-table.ts'

const NO_PAST = 'metrics have no past: top cannot show an earlier moment'

const SHARED: { readonly [K in 'no-headers' | 'show-swap' | 'use-protocol-buffers']: Flag<boolean> } = {
  'no-headers': flag(bool, false, 'Omit the header line'),
  'show-swap': flag(bool, false, 'Show swap usage as well.'),
  'use-protocol-buffers': flag(
    bool,
    true,
    'Request protocol buffers from the metrics API. Accepted without effect: kubectl requests JSON.',
  ),
}

const SORT_FLAG = { 'sort-by': flag(string, '', "Sort by 'cpu' or 'memory' in descending order.") }

const POD_FLAGS = {
  ...AT_FLAG,
  ...SHARED,
  ...SORT_FLAG,
  ...SELECTOR_FLAG,
  ...FIELD_SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  containers: flag(bool, false, 'Show the usage of each container.'),
  sum: flag(bool, false, 'Show the total usage of all pods'),
}

const NODE_FLAGS = {
  ...AT_FLAG,
  ...SHARED,
  ...SORT_FLAG,
  ...SELECTOR_FLAG,
  'show-capacity': flag(bool, false, 'Show percentages of the capacity of nodes instead of the allocatable resources.'),
}

type PodInvocation = Invocation<typeof POD_FLAGS>
type NodeInvocation = Invocation<typeof NODE_FLAGS>

const METRICS = 'metrics.k8s.io/v1beta1'

const pod: Command = defineCommand({
  name: 'pod',
  aliases: ['pods', 'po'],
  use: '[NAME | -l label] [options]',
  long: 'Show CPU and memory usage of pods. Metrics of a new pod appear after some time.',
  examples: `# Show all pods of the namespace
kubectl top pod

# Show the containers of a pod
kubectl top pod POD_NAME --containers`,
  flags: POD_FLAGS,
  completes: { names: 'pod' },
  async run(invocation) {
    const { flags, session, stdout, stderr } = invocation
    if (flags.at !== '') throw new KubectlError(NO_PAST)
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
    const { podTable } = await import('../top/usage-table.ts')
    const table = podTable(metrics, {
      ...tableOptions(flags),
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
  long: 'Show CPU and memory usage of nodes.',
  examples: `# Show all nodes
kubectl top node

# Show one node
kubectl top node NODE_NAME`,
  flags: NODE_FLAGS,
  completes: { names: 'node' },
  async run(invocation) {
    const { flags, session, stdout } = invocation
    if (flags.at !== '') throw new KubectlError(NO_PAST)
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
    const { nodeTable } = await import('../top/usage-table.ts')
    stdout.write(nodeTable(metrics, available, tableOptions(flags)))
  },
})

export const top: Command = defineGroup({
  name: 'top',
  use: '[flags] [options]',
  long: 'Show CPU and memory usage of pods and nodes from the metrics API, which autoscalers use as well.',
  commands: [
    row('node', 'Show CPU and memory usage of nodes', () => Promise.resolve(node), { aliases: ['nodes', 'no'] }),
    row('pod', 'Show CPU and memory usage of pods', () => Promise.resolve(pod), { aliases: ['pods', 'po'] }),
  ],
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

function tableOptions(flags: {
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

/** Pods younger than two minutes may lack metrics. */
const DELAY_MS = 120_000

/** Throws KubectlError if there are pods but no metrics. */
async function explainNothing({ flags, clock }: PodInvocation, rest: Rest, namespace: string): Promise<void> {
  const query = { labelSelector: flags.selector, fieldSelector: flags['field-selector'] }
  const { items = [] } = await rest.json<{ items?: Pod[] }>(resourcePath('v1/pods', namespace) + queryText(query))
  if (items.length === 0) return
  const old = items.find(({ metadata }) => clock.now() - epochMsOf(metadata.creationTimestamp ?? '') > DELAY_MS)
  if (old === undefined) throw new KubectlError('metrics not available yet')
  const { durationOfMs } = await import('#lib/go/duration.ts')
  const ageMs = clock.now() - epochMsOf(old.metadata.creationTimestamp ?? '')
  const { name = '', namespace: where = '' } = old.metadata
  throw new KubectlError(`Metrics not available for pod ${where}/${name}, age: ${durationOfMs(ageMs)}`)
}
