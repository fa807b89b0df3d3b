/** Creates the projected volume with the service account token, the API server's CA and the namespace. */
import type { Container, PodSpec, Volume } from '#apis/core/v1.ts'
import type { Random } from '#lib/random.ts'
import { generateName } from '#meta/object.ts'

const PREFIX = 'kube-api-access-'
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount'
/** One hour and seven seconds: this value marks injected tokens, which the server extends for old clients. */
const TOKEN_SECONDS = 3607
/** 0644. */
const MODE = 420

/** Modifies the spec. Containers with a mount at that path keep it. */
export function mountToken(spec: PodSpec, random: Random): void {
  const present = spec.volumes?.find(({ name }) => name.startsWith(PREFIX))?.name
  const name = present ?? generateName(PREFIX, random)
  const lacking = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].filter(lacksMount)
  for (const container of lacking) {
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: MOUNT_PATH }]
  }
  if (present === undefined && lacking.length > 0) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)]
}

function lacksMount({ volumeMounts = [] }: Container): boolean {
  return !volumeMounts.some(({ mountPath }) => mountPath === MOUNT_PATH)
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
      defaultMode: MODE,
    },
  }
}
