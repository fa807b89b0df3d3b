/**
 * Builds the manifest that imports a cluster: `kubectl apply` creates the agent, its service account and its
 * permissions from it.
 */
import type { KubeObject } from '#meta/object.ts'

import { ownerBinding } from './access-objects.ts'

/** In the imported cluster. Deleting it removes the agent. */
export const AGENT_NAMESPACE = 'hyperkube-system'
export const AGENT_NAME = 'hyperkube-cluster-agent'
const RBAC = 'rbac.authorization.k8s.io'
/** The Secret that the agent makes itself. */
export const CREDENTIAL_SECRET = 'hyperkube-agent-credential'
const REGISTRATION_SECRET = 'hyperkube-agent-registration'

export interface AgentManifestOptions {
  readonly serverUrl: string
  /** PEM of the server's authority; undefined: a public one. */
  readonly ca: string | undefined
  readonly registrationToken: string
  readonly image: string
}

const LABELS = { 'app.kubernetes.io/name': AGENT_NAME }
const METADATA = { name: AGENT_NAME, labels: LABELS }
const IN_NAMESPACE = { ...METADATA, namespace: AGENT_NAMESPACE }

/** The objects in the order of their creation. */
export function agentManifest(options: AgentManifestOptions): readonly KubeObject[] {
  const { ca, registrationToken } = options
  const objects: readonly object[] = [
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: AGENT_NAMESPACE, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: IN_NAMESPACE },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...IN_NAMESPACE, name: REGISTRATION_SECRET },
      stringData: { token: registrationToken, ...(ca !== undefined && { 'ca.crt': ca }) },
    },
    ...rights(),
    ownerBinding(),
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: IN_NAMESPACE, spec: deployment(options) },
  ]
  return objects as readonly KubeObject[]
}

/** The agent speaks for users of the management server: it checks their names, because RBAC knows no prefixes. */
function rights(): readonly object[] {
  const subjects = [{ kind: 'ServiceAccount', name: AGENT_NAME, namespace: AGENT_NAMESPACE }]
  const roleRef = (kind: string): object => ({ apiGroup: RBAC, kind, name: AGENT_NAME })
  const [apiVersion, core] = [`${RBAC}/v1`, ['']]
  return [
    {
      apiVersion,
      kind: 'ClusterRole',
      metadata: METADATA,
      rules: [
        { apiGroups: core, resources: ['users', 'groups'], verbs: ['impersonate'] },
        { apiGroups: core, resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] },
      ],
    },
    { apiVersion, kind: 'ClusterRoleBinding', metadata: METADATA, roleRef: roleRef('ClusterRole'), subjects },
    {
      apiVersion,
      kind: 'Role',
      metadata: IN_NAMESPACE,
      rules: [
        { apiGroups: core, resources: ['secrets'], verbs: ['create'] },
        { apiGroups: core, resources: ['secrets'], resourceNames: [CREDENTIAL_SECRET], verbs: ['get'] },
      ],
    },
    { apiVersion, kind: 'RoleBinding', metadata: IN_NAMESPACE, roleRef: roleRef('Role'), subjects },
  ]
}

function deployment({ serverUrl, ca, image }: Pick<AgentManifestOptions, 'serverUrl' | 'ca' | 'image'>): object {
  const folder = '/etc/hyperkube-agent'
  const container = {
    name: 'agent',
    image,
    args: [
      'cluster-agent',
      `--server=${serverUrl}`,
      `--token-file=${folder}/token`,
      ...(ca === undefined ? [] : [`--certificate-authority=${folder}/ca.crt`]),
      `--credential-secret=${AGENT_NAMESPACE}/${CREDENTIAL_SECRET}`,
    ],
    resources: { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '256Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [{ name: 'registration', mountPath: folder, readOnly: true }],
  }
  return {
    replicas: 1,
    selector: { matchLabels: LABELS },
    template: {
      metadata: { labels: LABELS },
      spec: {
        serviceAccountName: AGENT_NAME,
        securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
        tolerations: [{ operator: 'Exists' }],
        containers: [container],
        volumes: [{ name: 'registration', secret: { secretName: REGISTRATION_SECRET } }],
      },
    },
  }
}
