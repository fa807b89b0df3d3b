/** Lists the kinds of the management API, in the order in which the server creates their definitions. */
import type { KubeObject } from '#meta/object.ts'

import { MEMBER, PROJECT, ROLE } from './access.ts'
import { AUTH_PROVIDER } from './auth-provider.ts'
import { CLUSTER_TEMPLATE } from './cluster-template.ts'
import { CLUSTER } from './cluster.ts'
import type { ManagementKind } from './definition.ts'
import { MACHINE } from './machine.ts'
import { OPERATION } from './operation.ts'
import { REGISTRATION_TOKEN } from './registration-token.ts'
import { TOKEN } from './token.ts'
import { USER } from './user.ts'

export const MANAGEMENT_KINDS: readonly ManagementKind<KubeObject>[] = [
  ROLE,
  USER,
  TOKEN,
  AUTH_PROVIDER,
  CLUSTER,
  CLUSTER_TEMPLATE,
  PROJECT,
  MEMBER,
  REGISTRATION_TOKEN,
  MACHINE,
  OPERATION,
]
