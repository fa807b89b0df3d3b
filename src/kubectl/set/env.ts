/** kubectl set env: sets, removes, imports and lists environment variables of containers. */
import type { Container, EnvVar } from '#apis/core/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { stringArray, strings } from '#lib/flags/list-kinds.ts'
import { goQuote } from '#lib/go/text.ts'

import type { Info } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, KubectlError } from '../errors.ts'
import { type DryRun, dryRunOf, SELECTOR_FLAG, withDryRun } from '../flag-sets.ts'
import { readAll } from '../manifests/manifests.ts'
import { printerOf } from '../printing.ts'
import type { AnyObject } from '../session/rest.ts'
import { changeAll, containersOf, LOCAL_SERVER_RUN, selectObjects, podSpecOf, setFlags } from './changing.ts'
import {
  changedEnvironment,
  type EnvironmentChanges,
  parseEnvironment,
  refuseOverwriting,
  sourceText,
  splitEnvironment,
} from './environment.ts'

const FLAGS = {
  ...setFlags('the resource to update the env'),
  ...SELECTOR_FLAG,
  containers: flag(string, '*', 'Names of the containers to change; * matches any text.', { shorthand: 'c' }),
  env: flag(stringArray, [], 'Environment variable to set in each container, as KEY=VALUE.', { shorthand: 'e' }),
  from: flag(string, '', 'Config map or secret to import variables from.'),
  keys: flag(strings, [], 'Keys to import. By default all keys.'),
  list: flag(bool, false, 'Show the environment with the changes.'),
  overwrite: flag(bool, true, 'Allow existing variables to be overwritten.'),
  prefix: flag(string, '', 'Prefix for the names of variables.'),
  resolve: flag(bool, false, 'With --list, show the values of references to secrets and config maps.'),
}

type EnvInvocation = Invocation<typeof FLAGS>

export const setEnv: Command = defineCommand({
  name: 'env',
  use: 'RESOURCE/NAME KEY_1=VAL_1 ... KEY_N=VAL_N [options]',
  long: 'Set environment variables of containers: KEY=VALUE sets a variable, KEY- removes it, - reads variables from standard input.',
  examples: `# Set a variable of a deployment
kubectl set env deployment/registry STORAGE_DIR=/local

# List the variables of all deployments
kubectl set env deployment --list --all

# Import variables from a secret
kubectl set env --from=secret/mysecret deployment/myapp`,
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, session } = invocation
    if (flags.all && flags.selector !== '') {
      throw new KubectlError('cannot set --all and --selector at the same time')
    }
    const { resources, specs } = splitEnvironment(args)
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    await printerOf(invocation, { operation: withDryRun(OPERATION, dryRun) })
    await session.config()
    checkFlags(flags, resources, dryRun)
    const all = [...flags.env, ...specs]
    const stdinInUse = all.includes('-')
    const typed = stdinInUse ? (await readAll(invocation.stdin())).toString() : ''
    const given = parseEnvironment(all, typed)
    const meant = { selector: flags.selector, refusesLocalNames: false, stdinInUse }
    const taken = flags.from === '' ? [] : await variablesFrom(invocation, meant)
    const set = [...given.set, ...taken].map((one) => ({ ...one, name: `${flags.prefix}${one.name}` }))
    const infos = await selectObjects(invocation, resources, meant)
    const changes = { set, removed: given.removed }
    if (flags.list) return listAll(invocation, infos, changes)
    return changeAll(invocation, infos, {
      dryRun,
      operation: OPERATION,
      failure: 'failed to patch env update to pod template: ',
      change: (object) => void changed(invocation, object, changes),
    })
  },
})

const OPERATION = 'env updated'

function checkFlags(flags: EnvInvocation['flags'], resources: readonly string[], dryRun: DryRun): void {
  const problems: [isSo: boolean, text: string][] = [
    [flags.local && dryRun === 'server', LOCAL_SERVER_RUN],
    [
      flags.filename.length === 0 && resources.length === 0,
      'one or more resources must be specified as <resource> <name> or <resource>/<name>',
    ],
    [flags.list && flags.output !== '', '--list and --output may not be specified together'],
    [
      flags.keys.length > 0 && flags.from === '',
      'when specifying --keys, a configmap or secret must be provided with --from',
    ],
  ]
  const problem = problems.find(([isSo]) => isSo)
  if (problem !== undefined) throw new KubectlError(problem[1])
}

/** One variable for each key, with a valid shell name. */
async function variablesFrom(invocation: EnvInvocation, meant: Parameters<typeof selectObjects>[2]): Promise<EnvVar[]> {
  const { flags, stderr } = invocation
  const infos = await selectObjects(invocation, [flags.from], meant)
  return infos.flatMap(({ kind, name, object }) => {
    if (kind.kind !== 'Secret' && kind.kind !== 'ConfigMap') {
      throw new KubectlError('unsupported resource specified in --from')
    }
    const keys = Object.keys(object?.['data'] ?? {}).filter(
      (key) => flags.keys.length === 0 || flags.keys.includes(key),
    )
    return keys.map((key): EnvVar => {
      const variable = key.replaceAll(/[^a-zA-Z0-9_]/g, '_').toUpperCase()
      if (variable !== key) stderr.write(`Warning: key ${key} transferred to ${variable}\n`)
      const reference = kind.kind === 'Secret' ? 'secretKeyRef' : 'configMapKeyRef'
      return { name: variable, valueFrom: { [reference]: { name, key } } }
    })
  })
}

/** The changed containers; prints a message if none match. */
function changed(
  { flags, stderr }: EnvInvocation,
  object: AnyObject,
  changes: EnvironmentChanges,
): readonly Container[] {
  const containers = containersOf(podSpecOf(object), flags.containers)
  if (containers.length === 0) {
    const name = `${object.kind ?? ''}/${object.metadata.name ?? ''}`
    stderr.write(`Warning: ${name} does not have any containers matching ${goQuote(flags.containers)}\n`)
  }
  for (const container of containers) {
    const { env = [] } = container
    if (!flags.overwrite) refuseOverwriting(env, changes.set)
    const next = changedEnvironment(env, changes)
    if (next.length > 0) container.env = next
    else delete container.env
  }
  return containers
}

/** `--list` sends nothing, and only prints failed lookups. */
async function listAll(invocation: EnvInvocation, infos: readonly Info[], changes: EnvironmentChanges): Promise<void> {
  for (const { object } of infos) {
    const copy = structuredClone(object as AnyObject)
    let containers: readonly Container[]
    try {
      containers = changed(invocation, copy, changes)
    } catch {
      // Objects without containers have no environment.
      continue
    }
    for (const container of containers) await listOne(invocation, copy, container)
  }
}

async function listOne(
  { flags, session, stdout, stderr }: EnvInvocation,
  object: AnyObject,
  container: Container,
): Promise<void> {
  stdout.write(`# ${object.kind ?? ''} ${object.metadata.name ?? ''}, container ${container.name}\n`)
  const failed = new Map<string, string[]>()
  for (const { name, value = '', valueFrom } of container.env ?? []) {
    if (valueFrom === undefined) {
      stdout.write(`${name}=${value}\n`)
      continue
    }
    const reference = `# ${name} from ${sourceText(valueFrom)}\n`
    if (!flags.resolve) {
      stdout.write(reference)
      continue
    }
    const { valueOf } = await import('./environment-values.ts')
    const { namespace } = await session.namespace()
    const around = { rest: await session.rest(), namespace, object, container, spec: podSpecOf(object) }
    await valueOf(valueFrom, around).then(
      (found) => stdout.write(`${name}=${found}\n`),
      (error: unknown) => {
        stdout.write(reference)
        const { message } = asError(error)
        failed.set(message, [...(failed.get(message) ?? []), name])
      },
    )
  }
  const lines = [...failed].map(([why, names]) => `error retrieving reference for ${names.sort().join(', ')}: ${why}\n`)
  stderr.write(lines.sort().join(''))
}
