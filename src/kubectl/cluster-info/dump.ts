/** kubectl cluster-info dump: writes nodes, workloads of some namespaces and container logs, for later inspection. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import type { Namespace, Pod } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, duration, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import type { Output, Printer } from '../print/printer.ts'
import { printerOf, printFlags } from '../printing.ts'
import { resourcePath } from '../related-objects.ts'
import { queryText, type Rest } from '../session/rest.ts'
import { timeoutProblem } from '../streams/target-pod.ts'

const NAMESPACE = 'kube-system'

/** The dumped resources of a namespace: file name and resource. Pods are last, because their logs follow. */
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
  'all-namespaces': flag(bool, false, 'Dump all namespaces and ignore --namespaces.', { shorthand: 'A' }),
  namespaces: flag(strings, [], 'Comma-separated list of namespaces to dump.'),
  'output-directory': flag(string, '', 'Directory to write files to. If empty or "-", write to standard output.'),
  'pod-running-timeout': flag(
    duration,
    20_000,
    'Must be positive. It has no other effect, because logs are requested once.',
  ),
}

type DumpInvocation = Invocation<typeof FLAGS>

export const dump: Command = defineCommand({
  name: 'dump',
  use: '[flags] [options]',
  long: 'Dump information for debugging a cluster: nodes, and the events, workloads, services, pods and logs of the current namespace and kube-system, or of other namespaces.',
  examples: `# Dump to standard output
kubectl cluster-info dump

# Dump to files in a directory
kubectl cluster-info dump --output-directory=/path/to/cluster-state

# Dump all namespaces
kubectl cluster-info dump --all-namespaces

# Dump selected namespaces to files
kubectl cluster-info dump --namespaces default,kube-system --output-directory=/path/to/cluster-state`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session, stdout } = invocation
    // The server already sends fields in the order of Go's types.
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

/** The dump prints only lists, which have no names. */
const NO_NAMES: Printer = {
  print(list) {
    const { kind, apiVersion } = list as { readonly kind: string; readonly apiVersion: string }
    const version = apiVersion.slice(apiVersion.indexOf('/') + 1)
    throw new KubectlError(`list types are not supported by name printing: *${version}.${kind}`)
  },
}

interface DumpContext {
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
  { printer, rest, outlets }: DumpContext,
  resource: string,
  namespace: string,
  segments: readonly string[],
): Promise<JsonObject> {
  const list = await rest.json(resourcePath(resource, namespace))
  const { kind, apiVersion, metadata, items } = list
  // Go's form of an empty list.
  const printed = { kind, apiVersion, metadata, items: (items as unknown[]).length === 0 ? null : items } as JsonObject
  await outlets.write(segments, (out) => printer.print(printed, out))
  return list
}

async function dumpLogs({ rest, outlets }: DumpContext, namespace: string, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    const { initContainers = [], containers } = pod.spec
    const logs: (string | Buffer)[] = []
    for (const { name } of [...initContainers, ...containers]) logs.push(...(await logOf(rest, pod, name)))
    const segments = [namespace, pod.metadata.name ?? '', 'logs']
    await outlets.write(segments, (out) => logs.forEach((part) => out.write(part)), '.txt')
  }
}

/** The dump contains the error in place of a log that cannot be read, and goes on. */
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

/** Writes to standard output, or to files below a folder. */
class Outlets {
  readonly #invocation: DumpInvocation

  constructor(invocation: DumpInvocation) {
    this.#invocation = invocation
  }

  /** `place` is the path below the folder, without extension. Throws KubectlError for a name that leads outside. */
  async write(segments: readonly string[], write: (out: BytesOutput) => void, ending = this.#ending()): Promise<void> {
    const { flags, stdout, cwd } = this.#invocation
    const folder = flags['output-directory']
    if (folder === '' || folder === '-') return write({ write: (text) => void stdout.write(text) })
    // Names come from the server; they must not make kubectl write elsewhere.
    const strange = segments.find((name) => name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name))
    if (strange !== undefined) throw new KubectlError(`refusing to write a file for the name ${goQuote(strange)}`)
    const chunks: Buffer[] = []
    write({ write: (text) => void chunks.push(Buffer.from(text)) })
    const file = `${join(resolve(cwd, folder), ...segments)}${ending}`
    await mkdir(dirname(file), { recursive: true, mode: 0o755 })
    await writeFile(file, Buffer.concat(chunks))
  }

  #ending(): string {
    const { output: format } = this.#invocation.flags
    return format === 'json' || format === 'yaml' ? `.${format}` : '.txt'
  }
}
