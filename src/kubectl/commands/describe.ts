/** kubectl describe: all that is worth knowing of objects, for people. */
import { pathOf } from '#client/api-client.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int } from '#lib/flags/kinds.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import { select } from '../builder.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import type { Describer } from '../describe/describer.ts'
import { asError, failuresOf, KubectlError } from '../errors.ts'
import { ALL_NAMESPACES_FLAG, fileFlags, SELECTOR_FLAG } from '../flag-sets.ts'
import type { Info, Selecting } from '../selecting.ts'
import { resourcePath, surroundings } from '../surroundings.ts'

const FLAGS = {
  ...fileFlags('containing the resource to describe.'),
  ...SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  'chunk-size': flag(int, 500, 'Read large lists in parts of so many. 0: all at once.'),
  'show-events': flag(bool, true, 'Show what happened to the objects.'),
}

type DescribeInvocation = Invocation<typeof FLAGS>

export const describe: Command = defineCommand({
  name: 'describe',
  use: '(-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) [options]',
  long:
    'Show details of a resource or of a group of them: the objects, what belongs to them and what happened to them. ' +
    'A name that is not there stands for all names that begin with it.\n\n' +
    'Use "kubectl api-resources" for a complete list of supported resources.',
  examples: `# Describe a node
kubectl describe nodes kubernetes-node-emt8.c.myproject.internal

# Describe a pod
kubectl describe pods/nginx

# Describe what pod.json names
kubectl describe -f pod.json

# Describe all pods
kubectl describe pods

# Describe pods with the label name=myLabel
kubectl describe pods -l name=myLabel`,
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, stderr, session } = invocation
    if (args.length === 0 && flags.filename.length === 0 && flags.kustomize === '') {
      throw new KubectlError(
        'You must specify the type of resource to describe. Use "kubectl api-resources" for a complete list of supported resources.\n',
      )
    }
    const { namespace, isExplicit } = await session.namespace()
    const isEverywhere = flags['all-namespaces']
    const selecting = { ...baseOf(invocation, namespace), args, requireNamespace: isExplicit && !isEverywhere }
    const selection = await select({
      ...selecting,
      continueOnError: true,
      allNamespaces: isEverywhere,
      files: flags,
      labelSelector: flags.selector,
    })
    const { infos, error } = await selection.infos()
    const showsEvents = eventsAreShown(invocation, error === undefined && infos.length < 2)
    if (error !== undefined && isNotFound(error) && args.length === 2) {
      return describeMatching(invocation, namespace, { error, showsEvents })
    }
    const errors = error === undefined ? [] : [error]
    const failures = await describeAll(invocation, infos, showsEvents)
    if (infos.length === 0 && errors.length === 0) {
      stderr.write(isEverywhere ? 'No resources found\n' : `No resources found in ${namespace} namespace.\n`)
    }
    const failed = failuresOf([...errors, ...failures])
    if (failed !== undefined) throw failed
    return undefined
  },
})

/** Of several objects only when asked to. */
function eventsAreShown({ flags, changed }: DescribeInvocation, isOne: boolean): boolean {
  return flags['show-events'] && (isOne || changed.has('show-events'))
}

function baseOf({ session, flags, ...io }: DescribeInvocation, namespace: string): Selecting {
  return { session, io, namespace, allowEmptySelector: true, chunkSize: flags['chunk-size'], flatten: true }
}

/** What went wrong, each text once. */
async function describeAll(
  invocation: DescribeInvocation,
  infos: readonly Info[],
  showsEvents: boolean,
): Promise<Error[]> {
  const failures = new Map<string, Error>()
  let separator = ''
  for (const info of infos) {
    try {
      invocation.stdout.write(separator + (await describeOne(invocation, info, showsEvents)))
      separator = '\n\n'
    } catch (thrown) {
      const error = asError(thrown)
      if (!failures.has(error.message)) failures.set(error.message, error)
    }
  }
  return [...failures.values()]
}

/** All whose names begin with what was given; `error` where there are none. */
async function describeMatching(
  invocation: DescribeInvocation,
  namespace: string,
  { error, showsEvents }: { readonly error: Error; readonly showsEvents: boolean },
): Promise<void> {
  const [type = '', prefix = ''] = invocation.args
  const selection = await select({ ...baseOf(invocation, namespace), args: [type], singleResourceType: true })
  const { infos, error: failed } = await selection.infos()
  if (failed !== undefined) throw failed
  const matching = infos.filter(({ name }) => name.startsWith(prefix))
  if (matching.length === 0) throw error
  for (const info of matching) invocation.stdout.write(`${await describeOne(invocation, info, showsEvents)}\n`)
}

async function describeOne(
  { session, flags, clock }: DescribeInvocation,
  info: Info,
  showsEvents: boolean,
): Promise<string> {
  const { kind, namespace, name } = info
  const [{ DESCRIBERS }, rest] = await Promise.all([import('../describe/describers.ts'), session.rest()])
  const own = DESCRIBERS.get(kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`)
  const path = own === undefined ? pathOf(kind, { namespace, name }) : resourcePath(own.resource, namespace, name)
  const object = await rest.json<KubeObject>(path)
  const around = surroundings({ rest, chunkSize: flags['chunk-size'], nowMs: clock.now(), showsEvents })
  if (own !== undefined) return (own.describe as unknown as Describer)(object, around)
  return (await import('../describe/generic.ts')).describeGeneric(object, around)
}
