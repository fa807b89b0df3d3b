/** kubectl set subject: adds subjects to role bindings. */
import type { Subject } from '#apis/rbac/v1.ts'
import { flag } from '#lib/flags/flags.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'

import { subjectText } from '../auth/reconciliation.ts'
import { type Command, defineCommand } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { dryRunOf, SELECTOR_FLAG, withDryRun } from '../flag-sets.ts'
import { printerOf } from '../printing.ts'
import { changeAll, LOCAL_SERVER_RUN, selectObjects, setFlags } from './changing.ts'

const GROUP = 'rbac.authorization.k8s.io'

export const setSubject: Command = defineCommand({
  name: 'subject',
  use: '(-f FILENAME | TYPE NAME) [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]',
  long: 'Add users, groups and service accounts to a role binding or cluster role binding.',
  examples: `# Add a service account to a cluster role binding
kubectl set subject clusterrolebinding admin --serviceaccount=namespace:serviceaccount1`,
  flags: {
    ...setFlags('the resource to update the subjects'),
    ...SELECTOR_FLAG,
    group: flag(stringArray, [], 'Groups to bind to the role.'),
    serviceaccount: flag(stringArray, [], 'Service accounts to bind to the role, as <namespace>:<name>.'),
    user: flag(stringArray, [], 'Users to bind to the role.'),
  },
  async run(invocation) {
    const { args, flags, session } = invocation
    const dryRun = dryRunOf(flags['dry-run'], invocation)
    const operation = 'subjects updated'
    await printerOf(invocation, { operation: withDryRun(operation, dryRun) })
    const infos = await selectObjects(invocation, args, { selector: flags.selector })
    if (flags.local && dryRun === 'server') throw new KubectlError(LOCAL_SERVER_RUN)
    if (flags.all && flags.selector !== '') {
      throw new KubectlError('cannot set --all and --selector at the same time')
    }
    const hasClusterBinding = infos.some(({ kind }) => kind.kind === 'ClusterRoleBinding')
    const subjects = subjectsOf(flags, { hasClusterBinding, namespace: (await session.namespace()).namespace })
    await changeAll(invocation, infos, {
      dryRun,
      operation,
      failure: 'failed to patch subjects to rolebinding: ',
      change(object) {
        if (object.kind !== 'RoleBinding' && object.kind !== 'ClusterRoleBinding') {
          throw new KubectlError('setting subjects is only supported for RoleBinding/ClusterRoleBinding')
        }
        const had = (object['subjects'] ?? []) as Subject[]
        const known = new Set(had.map(subjectText))
        const added = subjects.filter((subject) => !known.has(subjectText(subject)))
        if (added.length > 0) object['subjects'] = [...had, ...added]
        return added.length > 0
      },
    })
  },
})

interface SubjectFlags {
  readonly user: readonly string[]
  readonly group: readonly string[]
  readonly serviceaccount: readonly string[]
}

/** Throws KubectlError. */
function subjectsOf(
  { user, group, serviceaccount }: SubjectFlags,
  { hasClusterBinding, namespace }: { readonly hasClusterBinding: boolean; readonly namespace: string },
): Subject[] {
  if (user.length + group.length + serviceaccount.length === 0) {
    throw new KubectlError('you must specify at least one value of user, group or serviceaccount')
  }
  const unique = (names: readonly string[]): string[] => [...new Set(names)].sort()
  const accounts = serviceaccount.map((text) => {
    const [where = '', name = '', ...rest] = text.split(':')
    if (name === '' || rest.length > 0) throw new KubectlError('serviceaccount must be <namespace>:<name>')
    if (where === '' && hasClusterBinding) {
      throw new KubectlError('serviceaccount must be <namespace>:<name>, namespace must be specified')
    }
    return text
  })
  return [
    ...unique(user).map((name) => ({ kind: 'User', apiGroup: GROUP, name })),
    ...unique(group).map((name) => ({ kind: 'Group', apiGroup: GROUP, name })),
    ...unique(accounts).map((text) => {
      const [where = '', name = ''] = text.split(':')
      return { kind: 'ServiceAccount', name, namespace: where === '' ? namespace : where }
    }),
  ]
}
