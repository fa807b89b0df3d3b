/** kubectl cluster-info dump: nodes, what runs in some namespaces, and the logs of its containers, to look at later. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import type { Namespace, Pod } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go-text.ts'
import type { JsonObject } from '#lib/json-value.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import type { Output, Printer } from '../print/printer.ts'
import { printerOf, printFlags } from '../printing.ts'
import { queryText, type Rest } from '../rest.ts'
import { timeoutProblem } from '../streams/target-pod.ts'
import { resourcePath } from '../surroundings.ts'

const NAMESPACE = 'kube-system'

/** What is dumped of a namespace: the file's name and the resource. Pods are last, for their logs follow. */
const PARTS: readonly (readonly [file: string, resource: string])[] = [
  ['events', 'v1/events'],
  ['replication-controllers', 'v1/replicationcontrollers'],
  ['services', 'v1/services'],
  ['daemonsets', 'apps/v1/daemonsets'],
  ['deployments', 'apps/v1/deployments'],
  ['replicasets', 'apps/v1/replicasets'],
  ['pods', 'v1/pods'],
]

const { output, ...printing } = printFlags()

const FLAGS = {
  ...printing,
  output: { ...output, initial: 'json' },
  'all-namespaces': flag(bool, false, 'Dump all namespaces; --namespaces does not count then.', { shorthand: 'A' }),
  namespaces: flag(strings, [], 'Namespaces to dump, separated by commas.'),
  'output-directory': flag(string, '', 'Folder to write files to. Empty or "-": all goes to standard output.'),
  'pod-running-timeout': flag(
    duration,
    20_000,
    'Must be positive. Taken without effect otherwise: logs are asked for once.',
  ),
}

type DumpInvocation = Invocation<typeof FLAGS>

export const dump: Command = defineCommand({
  name: 'dump',
  use: '[flags] [options]',
  long: 'Dump what helps to find out what is wrong with a cluster: nodes, and events, workloads, services, pods and logs of the current namespace and of kube-system, or of other namespaces.',
  examples: `# Dump to standard output
kubectl cluster-info dump

# Dump to files in a folder
kubectl cluster-info dump --output-directory=/path/to/cluster-state

# Dump all namespaces
kubectl cluster-info dump --all-namespaces

# Dump some namespaces to files
kubectl cluster-info dump --namespaces default,kube-system --output-directory=/path/to/cluster-state`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session, stdout } = invocation
    // What the server sent is in the order of Go's types already.
    const printer = isName(flags.output) ? NO_NAMES : await printerOf(invocation, { operation: '', keepOrder: true })
    const problem = timeoutProblem(flags['pod-running-timeout'])
    await session.config()
    const { namespace } = await session.namespace()
    if (problem !== undefined) throw new KubectlError(problem)
    const dumping = { printer, rest: await session.rest(), outlets: new Outlets(invocation) }
    await dumpList(dumping, 'v1/nodes', '', ['nodes'])
    for (const each of await namespacesOf(invocation, dumping.rest, namespace)) {
      for (const [file, resource] of PARTS) {
        const list = await dumpList(dumping, resource, each, [each, file])
        if (file === 'pods') await dumpLogs(dumping, each, list.items as unknown as readonly Pod[])
      }
    }
    const folder = flags['output-directory']
    if (folder !== '' && folder !== '-') stdout.write(`Cluster info dumped to ${folder}\n`)
  },
})

function isName(format: string): boolean {
  return format === '' || format.toLowerCase() === 'name'
}

/** Only lists are printed, and they have no names. */
const NO_NAMES: Printer = {
  print(list) {
    const { kind, apiVersion } = list as { readonly kind: string; readonly apiVersion: string }
    const version = apiVersion.slice(apiVersion.indexOf('/') + 1)
    throw new KubectlError(`list types are not supported by name printing: *${version}.${kind}`)
  },
}

interface Dumping {
  readonly printer: Printer
  readonly rest: Rest
  readonly outlets: Outlets
}

async function namespacesOf({ flags }: DumpInvocation, rest: Rest, current: string): Promise<readonly string[]> {
  if (flags['all-namespaces']) {
    const { items } = await rest.json<{ readonly items: readonly Namespace[] }>(resourcePath('v1/namespaces', ''))
    return items.map(({ metadata }) => metadata.name ?? '')
  }
  return flags.namespaces.length === 0 ? [NAMESPACE, current] : flags.namespaces
}

async function dumpList(
  { printer, rest, outlets }: Dumping,
  resource: string,
  namespace: string,
  place: readonly string[],
): Promise<JsonObject> {
  const list = await rest.json(resourcePath(resource, namespace))
  const { kind, apiVersion, metadata, items } = list
  // Go's list of nothing.
  const printed = { kind, apiVersion, metadata, items: (items as unknown[]).length === 0 ? null : items } as JsonObject
  await outlets.write(place, (out) => printer.print(printed, out))
  return list
}

async function dumpLogs({ rest, outlets }: Dumping, namespace: string, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    const { initContainers = [], containers } = pod.spec
    const logs: (string | Buffer)[] = []
    for (const { name } of [...initContainers, ...containers]) logs.push(...(await logOf(rest, pod, name)))
    const place = [namespace, pod.metadata.name ?? '', 'logs']
    await outlets.write(place, (out) => logs.forEach((part) => out.write(part)), '.txt')
  }
}

/** A log that cannot be had is no reason to stop: it says why instead. */
async function logOf(rest: Rest, { metadata }: Pod, container: string): Promise<(string | Buffer)[]> {
  const { name = '', namespace = '' } = metadata
  const about = `logs for container ${container} of pod ${namespace}/${name} ====\n`
  const path = `${resourcePath('v1/pods', namespace, name)}/log${queryText({ container })}`
  const log = await rest
    .raw({ method: 'GET', path })
    .catch((error: unknown) => `Request log error: ${asError(error).message}\n`)
  return [`==== START ${about}`, log, `==== END ${about}`]
}

interface BytesOutput extends Output {
  write(text: string | Buffer): void
}

/** Standard output, or files below a folder. */
class Outlets {
  readonly #invocation: DumpInvocation

  constructor(invocation: DumpInvocation) {
    this.#invocation = invocation
  }

  /** `place` names the file, without its ending, from the folder on. Throws KubectlError for a name that leads elsewhere. */
  async write(place: readonly string[], write: (out: BytesOutput) => void, ending = this.#ending()): Promise<void> {
    const { flags, stdout, cwd } = this.#invocation
    const folder = flags['output-directory']
    if (folder === '' || folder === '-') return write({ write: (text) => void stdout.write(text) })
    // Names come from the server, and nothing of it may write anywhere else.
    const strange = place.find((name) => name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name))
    if (strange !== undefined) throw new KubectlError(`refusing to write a file for the name ${goQuote(strange)}`)
    const chunks: Buffer[] = []
    write({ write: (text) => void chunks.push(Buffer.from(text)) })
    const file = `${join(resolve(cwd, folder), ...place)}${ending}`
    await mkdir(dirname(file), { recursive: true, mode: 0o755 })
    await writeFile(file, Buffer.concat(chunks))
  }

  #ending(): string {
    const { output: format } = this.#invocation.flags
    return format === 'json' || format === 'yaml' ? `.${format}` : '.txt'
  }
}
