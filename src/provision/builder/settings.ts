/** The settings of `hyperkube build`, with the names of its flags. */

export interface OutputSettings {
  readonly debug: boolean
  readonly quiet: boolean
  readonly trace: boolean
}

export interface BuildSettings extends OutputSettings {
  readonly config: string
  readonly 'ssh-agent-auth': boolean
  readonly 'ignore-docker-version': boolean
  readonly 'etcd-binary': string
  readonly local: boolean
}

export interface CertificateSettings {
  readonly 'custom-certs': boolean
  readonly 'cert-dir': string
}
