/** The kubeconfig that a user downloads: one context that leads through the management server. */
import { stringifyYaml } from '#lib/yaml/write.ts'

export interface UserKubeconfig {
  readonly name: string
  readonly server: string
  /** PEM; undefined: the public authorities. */
  readonly ca: string | undefined
  readonly token: string
}

export function userKubeconfig({ name, server, ca, token }: UserKubeconfig): string {
  const authority = ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, ...authority } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  })
}
