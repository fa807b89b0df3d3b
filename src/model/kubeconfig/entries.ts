/** The types of clusters, users and credential plugins in a kubeconfig. */
export interface ClusterEntry {
  readonly server?: string
  readonly 'tls-server-name'?: string
  readonly 'insecure-skip-tls-verify'?: boolean
  readonly 'certificate-authority'?: string
  /** Base64, like all `-data`. */
  readonly 'certificate-authority-data'?: string
  readonly 'proxy-url'?: string
  readonly extensions?: readonly { readonly name: string; readonly extension: unknown }[]
}

export interface UserEntry {
  readonly 'client-certificate'?: string
  readonly 'client-certificate-data'?: string
  readonly 'client-key'?: string
  readonly 'client-key-data'?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly as?: string
  readonly 'as-uid'?: string
  readonly 'as-groups'?: readonly string[]
  readonly 'as-user-extra'?: Readonly<Record<string, readonly string[]>>
  readonly username?: string
  readonly password?: string
  readonly 'auth-provider'?: { readonly name?: string; readonly config?: Readonly<Record<string, string>> | null }
  readonly exec?: ExecEntry
}

export interface ExecEntry {
  readonly command?: string
  readonly args?: readonly string[] | null
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null
  readonly apiVersion?: string
  readonly installHint?: string
  readonly provideClusterInfo?: boolean
  readonly interactiveMode?: string
}
