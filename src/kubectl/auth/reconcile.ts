/** kubectl auth reconcile: adds the rules and subjects of files to roles and bindings. */
import { flag } from '#lib/flags/flags.ts'
import { bool } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { isAlreadyExists, isConflict, isForbidden, isNotFound } from '#meta/status.ts'

import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { DRY_RUN_FLAG, type DryRun, dryRunOf, fileFlags, withDryRun } from '../flag-sets.ts'
import { printerOf, printFlags } from '../printing.ts'
import type { AnyObject, Rest, Target } from '../session/rest.ts'
import { planReconcile, type RbacObject, type Reconciliation, ruleText, subjectText } from './reconciliation.ts'

const FLAGS = {
  ...printFlags(),
  ...fileFlags('identifying the resource to reconcile.'),
  ...DRY_RUN_FLAG,
  'remove-extra-permissions': flag(bool, false, 'Remove permissions from roles that the files do not contain.'),
  'remove-extra-subjects': flag(bool, false, 'Remove subjects from bindings that the files do not contain.'),
}

type ReconcileInvocation = Invocation<typeof FLAGS>

const GROUP = 'rbac.authorization.k8s.io'
const KINDS = new Set(['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding'])
const OLD_VERSIONS = new Set(['v1beta1', 'v1alpha1'])
const MAX_TRIES = 3

export const authReconcile: Command = defineCommand({
  name: 'reconcile',
  use: '-f FILENAME [options]',
  long: 'Create or update roles and bindings from files. Missing namespaces, rules and subjects are added. Extra rules and subjects stay unless a --remove-extra flag is set.',
  examples: '# Reconcile roles and bindings from a file\nkubectl auth reconcile -f my-rbac-rules.yaml',
  flags: FLAGS,
  async run(invocation) {
    const { args, flags, stdout } = invocation
    if (flags.filename.length === 0 && flags.kustomize === '') throw new KubectlError('must specify one of -f and -k')
    if (args.length > 0) throw new KubectlError('no arguments are allowed')
    const dryRun = dryRunFor(invocation)
    if (dryRun === 'server') throw new KubectlError('--dry-run=server for command reconcile is not supported yet')
    const selection = await selectFor(invocation, { checkObject: requireVersion })
    const printer = await printerOf(invocation, { operation: withDryRun('reconciled', dryRun), keepOrder: true })
    await selection.visit(async ({ kind, namespace: where, name, object }) => {
      if (kind.group !== GROUP || !KINDS.has(kind.kind)) return
      const target = { kind, namespace: where, name }
      const result = await reconcile(invocation, target, object as unknown as RbacObject, dryRun === 'none')
      printer.print(result.object as unknown as JsonObject, stdout)
      tell(invocation, result)
    })
  },
})

/** Upstream still has the types of older versions of the group and rejects them with a specific text. */
function requireVersion({ apiVersion = '', kind = '' }: AnyObject): void {
  const [group, version = ''] = apiVersion.split('/')
  if (group !== GROUP || !OLD_VERSIONS.has(version) || !KINDS.has(kind)) return
  throw new KubectlError(`only ${GROUP}/v1 is supported: not *${version}.${kind}`)
}

function dryRunFor(invocation: ReconcileInvocation): DryRun {
  try {
    return dryRunOf(invocation.flags['dry-run'], invocation)
  } catch (error) {
    const { message } = error as Error
    throw new KubectlError(`error accessing --dry-run flag for command reconcile: ${message}`, { cause: error })
  }
}

async function reconcile(
  invocation: ReconcileInvocation,
  target: Target,
  expected: RbacObject,
  isReal: boolean,
): Promise<Reconciliation> {
  const { flags, session } = invocation
  const rest = await session.rest()
  const options = {
    removeExtraPermissions: flags['remove-extra-permissions'],
    removeExtraSubjects: flags['remove-extra-subjects'],
  }
  for (let tries = 1; ; tries++) {
    const existing = await rest.get(target).catch((error: unknown) => {
      if (isNotFound(error)) return undefined
      throw error
    })
    const plan = planReconcile(expected, existing, options)
    if (plan.isProtected || !isReal || plan.operation === 'none') return plan
    try {
      return { ...plan, object: await write(rest, target, plan, existing?.metadata.uid) }
    } catch (error) {
      // Another client created the object in the meantime.
      const isRace = isConflict(error) || isAlreadyExists(error) || isNotFound(error)
      if (!isRace || tries >= MAX_TRIES) throw error
    }
  }
}

async function write(
  rest: Rest,
  target: Target,
  { operation, object }: Reconciliation,
  uid: string | undefined,
): Promise<RbacObject> {
  if (operation === 'update') return await rest.replace(target, object)
  if (operation === 'recreate') {
    await rest.delete(target, { preconditions: { uid } }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
    })
  }
  const { kind, namespace = '' } = target
  if (namespace !== '') await ensureNamespace(rest, namespace)
  return await rest.create({ kind, namespace }, object)
}

/** Users without access to namespaces may still write roles. */
async function ensureNamespace(rest: Rest, name: string): Promise<void> {
  const path = '/api/v1/namespaces'
  const isThere = await rest.json(`${path}/${encodeURIComponent(name)}`).then(
    () => true,
    (error: unknown) => {
      if (isNotFound(error) || isForbidden(error)) return false
      throw error
    },
  )
  if (isThere) return
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
  await rest.raw({ method: 'POST', path, body }).catch((error: unknown) => {
    if (!isAlreadyExists(error) && !isForbidden(error)) throw error
  })
}

function tell({ flags, stderr }: ReconcileInvocation, result: Reconciliation): void {
  if (result.operation === 'none') return
  const caveat = result.isProtected ? ', but object opted out (rbac.authorization.kubernetes.io/autoupdate: false)' : ''
  stderr.write(`\treconciliation required ${result.operation}${caveat}\n`)
  const list = (title: string, texts: readonly string[]): void => {
    if (texts.length > 0) stderr.write(`\t${title}:\n${texts.map((text) => `\t\t${text}\n`).join('')}`)
  }
  list('missing subjects added', result.missingSubjects.map(subjectText))
  if (flags['remove-extra-subjects']) list('extra subjects removed', result.extraSubjects.map(subjectText))
  list('missing rules added', result.missingRules.map(ruleText))
  if (flags['remove-extra-permissions']) list('extra rules removed', result.extraRules.map(ruleText))
}
