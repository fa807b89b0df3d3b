/** kubectl auth can-i: checks one action, or lists all allowed actions with `--list`. */
import type { PolicyRule } from '#apis/rbac/v1.ts'
import type { ServedKind } from '#client/discovery.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { compactRules, ruleCells } from '../describe/rbac.ts'
import { ExitError, KubectlError } from '../errors.ts'
import { ALL_NAMESPACES_FLAG } from '../flag-sets.ts'
import { TabWriter } from '../print/tabs.ts'
import type { Rest } from '../session/rest.ts'
import { postJson } from './reviews.ts'

const FLAGS = {
  ...ALL_NAMESPACES_FLAG,
  list: flag(bool, false, 'List all allowed actions.'),
  'no-headers': flag(bool, false, 'With --list, omit the header line.'),
  quiet: flag(bool, false, 'Print nothing; only set the exit code.', { shorthand: 'q' }),
  subresource: flag(string, '', 'Subresource such as pod/log or deployment/scale.'),
}

type CanI = Invocation<typeof FLAGS>

const RESOURCE_VERBS = new Set(
  'get list watch create update patch delete deletecollection use bind impersonate * approve sign escalate attest'.split(
    ' ',
  ),
)
const PATH_VERBS = new Set('get put post head options delete patch *'.split(' '))

/** Virtual resources that no API serves but that RBAC rules name. */
const UNSERVED = new Set(['users', 'groups'])

export const authCanI: Command = defineCommand({
  name: 'can-i',
  use: 'VERB [TYPE | TYPE/NAME | NONRESOURCEURL] [options]',
  long: 'Check whether an action is allowed. VERB is a verb of the Kubernetes API such as get, list or delete. The exit code is 1 if the action is not allowed.',
  examples: `# Check whether pods may be created in any namespace
kubectl auth can-i create pods --all-namespaces

# Check whether the logs of pods may be read
kubectl auth can-i get pods --subresource=log

# List all allowed actions in namespace "foo"
kubectl auth can-i --list --namespace=foo`,
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, session } = invocation
    if (flags.list) {
      if (args.length > 0) throw new KubectlError('list option must be specified with no arguments')
      if (flags.quiet || flags['all-namespaces'] || flags.subresource !== '') {
        throw new KubectlError(
          "list option can't be specified with neither quiet, all-namespaces nor subresource options",
        )
      }
      return listRules(invocation, await session.rest())
    }
    if (args.length !== 2) {
      throw new KubectlError(
        "you must specify two arguments: verb resource or verb resource/resourceName.\nSee 'kubectl auth can-i -h' for help and examples.",
      )
    }
    const spec = await attributesOf(invocation)
    if (flags['no-headers']) throw new KubectlError('--no-headers cannot be set without --list specified')
    if (!(await checkAccess(invocation, spec))) throw new ExitError(1)
    return undefined
  },
})

interface Review {
  readonly status: { readonly allowed: boolean; readonly reason?: string; readonly evaluationError?: string }
}

async function checkAccess({ flags, session, stdout }: CanI, spec: object): Promise<boolean> {
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const body = { kind: 'SelfSubjectAccessReview', apiVersion: 'authorization.k8s.io/v1', spec }
  const { status } = await postJson<Review>(await session.rest(), path, body)
  const details = [status.reason, status.evaluationError].filter((text) => (text ?? '') !== '')
  const answer = status.allowed ? 'yes' : ['no', ...details].join(' - ')
  if (!flags.quiet) stdout.write(`${answer}\n`)
  return status.allowed
}

/** Returns the attributes to review; warns of likely mistakes. */
async function attributesOf(invocation: CanI): Promise<object> {
  const [verb = '', what = ''] = invocation.args
  if (!what.startsWith('/')) return { resourceAttributes: await resourceAttributes(invocation, verb, what) }
  if (invocation.flags.subresource !== '') {
    throw new KubectlError('--subresource can not be used with NonResourceURL')
  }
  if (!PATH_VERBS.has(verb)) warn(invocation, `verb '${verb}' is not a known verb`)
  return { nonResourceAttributes: { verb, path: what } }
}

async function resourceAttributes(invocation: CanI, verb: string, what: string): Promise<object> {
  const { flags, session } = invocation
  const [type = '', ...name] = what.split('/')
  const known = await resourceOf(invocation, type)
  if (!flags['all-namespaces']) warnOfUse(invocation, verb, known)
  const attributes = {
    namespace: flags['all-namespaces'] ? '' : (await session.namespace()).namespace,
    verb,
    group: known?.group ?? '',
    resource: known?.plural ?? type,
    subresource: flags.subresource,
    name: name.join('/'),
  }
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== ''))
}

function warnOfUse(invocation: CanI, verb: string, known: ServedKind | undefined): void {
  if (known?.namespaced === false) {
    warn(invocation, `resource '${known.plural}' is not namespace scoped${inGroup(known.group)}`)
  }
  if (!RESOURCE_VERBS.has(verb)) warn(invocation, `verb '${verb}' is not a known verb`)
}

function inGroup(group: string): string {
  return group === '' ? '' : ` in group '${group}'`
}

/** The text ends with a line break, and the printer adds another. */
function warn({ stderr }: CanI, text: string): void {
  stderr.write(`Warning: ${text}\n\n`)
}

async function resourceOf(invocation: CanI, type: string): Promise<ServedKind | undefined> {
  if (type === '*') return undefined
  const mapper = await invocation.session.mapper()
  const typed = type.toLowerCase()
  return mapper.named(typed).catch((error: unknown) => {
    if (!(error instanceof KubectlError)) throw error
    const [resource = '', ...group] = typed.split('.')
    if (!UNSERVED.has(typed)) {
      warn(invocation, `the server doesn't have a resource type '${resource}'${inGroup(group.join('.'))}`)
    }
    return undefined
  })
}

interface Rules {
  readonly status: {
    readonly resourceRules?: readonly PolicyRule[]
    readonly nonResourceRules?: readonly PolicyRule[]
    readonly incomplete: boolean
    readonly evaluationError?: string
  }
}

async function listRules({ flags, session, stdout, stderr }: CanI, rest: Rest): Promise<void> {
  const { namespace } = await session.namespace()
  const path = '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews'
  const body = { kind: 'SelfSubjectRulesReview', apiVersion: 'authorization.k8s.io/v1', spec: { namespace } }
  const { status } = await postJson<Rules>(rest, path, body)
  if (status.incomplete) stderr.write(`Warning: the list may be incomplete: ${status.evaluationError ?? ''}\n`)
  const tabs = new TabWriter()
  if (!flags['no-headers']) tabs.write('Resources\tNon-Resource URLs\tResource Names\tVerbs\n')
  const rules = compactRules([...(status.resourceRules ?? []), ...(status.nonResourceRules ?? [])])
  for (const rule of rules) tabs.write(`${ruleCells(rule).join('\t')}\n`)
  stdout.write(tabs.flush())
}
