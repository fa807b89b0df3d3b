/**
 * Lets nodes join from other machines. It creates a bootstrap token, valid for a day, in a kubeconfig for `hyperkube
 * kubelet --bootstrap-kubeconfig`. It also creates the roles for CSRs and their approval, with kubeadm's names.
 */
import { Secrets } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import type { Random } from '#lib/random.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'
import type { KubeObject } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'

const GROUP = 'system:bootstrappers:kubeadm:default-node-token'
const RBAC = 'rbac.authorization.k8s.io'
const REQUESTS = 'system:certificates.k8s.io:certificatesigningrequests'
const DAY_MS = 86_400_000

export const JOIN_ACCESS: readonly (readonly [Kind, KubeObject])[] = [
  binding('kubeadm:kubelet-bootstrap', 'system:node-bootstrapper', GROUP),
  binding('kubeadm:node-autoapprove-bootstrap', `${REQUESTS}:nodeclient`, GROUP),
  binding('kubeadm:node-autoapprove-certificate-rotation', `${REQUESTS}:selfnodeclient`, 'system:nodes'),
]

function binding(name: string, role: string, group: string): readonly [Kind, KubeObject] {
  const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name: role }
  const subjects = [{ apiGroup: RBAC, kind: 'Group', name: group }]
  return [ClusterRoleBindings, { metadata: { name }, roleRef, subjects } as KubeObject]
}

/** Returns `abcdef.0123456789abcdef`. The token cleaner deletes it after a day. */
export async function makeJoinToken(client: ApiClient, random: Random): Promise<string> {
  const [id, secret] = [textOf(random, 6), textOf(random, 16)]
  const data = {
    'token-id': id,
    'token-secret': secret,
    description: 'For nodes that join, made by "hyperkube up".',
    expiration: timeOf(client.clock.now() + DAY_MS),
    'usage-bootstrap-authentication': 'true',
    'usage-bootstrap-signing': 'true',
    'auth-extra-groups': GROUP,
  }
  const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])
  await client.create(Secrets, {
    metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(encoded) as Record<string, string>,
  })
  return `${id}.${secret}`
}

const LETTERS = '0123456789abcdefghijklmnopqrstuvwxyz'

function textOf(random: Random, length: number): string {
  return Array.from({ length }, () => LETTERS[random.int(LETTERS.length)]).join('')
}

/** Pure. */
export function joinKubeconfig(server: string, ca: string, token: string): string {
  const name = 'hyperkube'
  const user = 'tls-bootstrap-token-user'
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user } }],
    'current-context': name,
  })
}
