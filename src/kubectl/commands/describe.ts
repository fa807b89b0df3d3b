/** kubectl describe: prints details of objects for people. */
import { pathOf } from '#client/api-client.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, int } from '#lib/flags/kinds.ts'
import type { KubeObject } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

import { select } from '../builder/builder.ts'
import type { Info, SelectOptions } from '../builder/select-options.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { asError, failuresOf, KubectlError } from '../errors.ts'
import { ALL_NAMESPACES_FLAG, fileFlags, SELECTOR_FLAG } from '../flag-sets.ts'
import { AT_FLAG } from '../past/moment-flags.ts'
import { resourcePath, createRelatedObjects } from '../related-objects.ts'

const FLAGS = {
  ...AT_FLAG,
  ...fileFlags('containing the resource to describe.'),
  ...SELECTOR_FLAG,
  ...ALL_NAMESPACES_FLAG,
  'chunk-size': flag(int, 500, 'Number of objects per request for large lists. 0 disables paging.'),
  'show-events': flag(bool, true, 'Show events of the objects.'),
}

type DescribeInvocation = Invocation<typeof FLAGS>

export const describe: Command = defineCommand({
  name: 'describe',
  use: '(-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) [options]',
  long:
    'Show details of a resource or a group of resources, with related objects and events. ' +
    'A name that does not exist selects all objects whose names begin with it.\n\n' +
    'Use "kubectl api-resources" for a complete list of supported resources.',
  examples: `# Describe a node
kubectl describe nodes kubernetes-node-emt8.c.myproject.internal

# Describe a pod
kubectl describe pods/nginx

# Describe the objects in pod.json
kubectl describe -f pod.json

# Describe all pods
kubectl describe pods

# Describe pods with the label name=myLabel
kubectl describe pods -l name=myLabel`,
  flags: FLAGS,
  completes: 'resources',
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

/** Events of several objects are shown only on request. */
function eventsAreShown({ flags, changed }: DescribeInvocation, isOne: boolean): boolean {
  return flags['show-events'] && (isOne || changed.has('show-events'))
}

function baseOf({ session, flags, ...io }: DescribeInvocation, namespace: string): SelectOptions {
  return { session, io, namespace, allowEmptySelector: true, chunkSize: flags['chunk-size'], flatten: true }
}

/** All errors; each text occurs once. */
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

/** All objects whose names begin with the prefix; throws `error` if there are none. */
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
  const own = DESCRIBERS[kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`]
  const path = own === undefined ? pathOf(kind, { namespace, name }) : resourcePath(own.resource, namespace, name)
  const object = await rest.json<KubeObject>(path)
  const around = createRelatedObjects({ rest, chunkSize: flags['chunk-size'], nowMs: clock.now(), showsEvents })
  const { describe: text } = own ?? (await import('../describe/generic.ts')).ANY_KIND
  return text(object, around)
}
