/** kubectl create rolebinding and clusterrolebinding: bind a role to users, groups and service accounts. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { stringArray } from '#lib/flags/list-kinds.ts'

import type { Command } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { beginning, defineGenerator } from './generator.ts'

const GROUP = 'rbac.authorization.k8s.io'

const SUBJECTS = {
  user: flag(stringArray, [], 'Users to bind to the role.'),
  group: flag(stringArray, [], 'Groups to bind to the role.'),
  serviceaccount: flag(stringArray, [], 'Service accounts to bind to the role, as <namespace>:<name>.'),
}

interface Subjects {
  readonly user: readonly string[]
  readonly group: readonly string[]
  readonly serviceaccount: readonly string[]
}

function subjectsOf({ user, group, serviceaccount }: Subjects): object {
  const subjects = [
    ...[...new Set(user)].map((name) => ({ kind: 'User', apiGroup: GROUP, name })),
    ...[...new Set(group)].map((name) => ({ kind: 'Group', apiGroup: GROUP, name })),
    ...[...new Set(serviceaccount)].map((text) => {
      const [namespace = '', name = '', ...rest] = text.split(':')
      if (namespace === '' || name === '' || rest.length > 0) {
        throw new KubectlError('serviceaccount must be <namespace>:<name>')
      }
      return { kind: 'ServiceAccount', name, namespace }
    }),
  ]
  return subjects.length === 0 ? {} : { subjects }
}

export const rolebinding: Command = defineGenerator({
  name: 'rolebinding',
  use: 'NAME --clusterrole=NAME|--role=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]',
  long: 'Create a role binding for a role or a cluster role.',
  failure: 'failed to create rolebinding: ',
  flags: {
    ...SUBJECTS,
    clusterrole: flag(string, '', 'Cluster role to bind.'),
    role: flag(string, '', 'Role to bind.'),
  },
  make(name, { flags }) {
    const { clusterrole, role } = flags
    if ((clusterrole === '') === (role === '')) {
      throw new KubectlError('exactly one of clusterrole or role must be specified')
    }
    const kind = role === '' ? 'ClusterRole' : 'Role'
    return {
      ...beginning(`${GROUP}/v1`, 'RoleBinding'),
      metadata: { name },
      ...subjectsOf(flags),
      roleRef: { apiGroup: GROUP, kind, name: role || clusterrole },
    }
  },
})

export const clusterrolebinding: Command = defineGenerator({
  name: 'clusterrolebinding',
  use: 'NAME --clusterrole=NAME [--user=username] [--group=groupname] [--serviceaccount=namespace:serviceaccountname] [--dry-run=server|client|none] [options]',
  long: 'Create a cluster role binding for a cluster role.',
  failure: 'failed to create clusterrolebinding: ',
  flags: { ...SUBJECTS, clusterrole: flag(string, '', 'Cluster role to bind.', { required: true }) },
  completesFlags: { clusterrole: { names: 'clusterrole' } },
  make: (name, { flags }) => ({
    ...beginning(`${GROUP}/v1`, 'ClusterRoleBinding'),
    metadata: { name },
    ...subjectsOf(flags),
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: flags.clusterrole },
  }),
})
