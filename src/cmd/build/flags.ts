/** Flags that all commands of `hyperkube build` have, by RKE's names. */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

export interface OutputFlags {
  readonly debug: boolean
  readonly quiet: boolean
  readonly trace: boolean
}

/** How much a command prints. They may stand before the command as well, as in `rke --debug up`. */
export const OUTPUT_FLAGS: {
  readonly debug: Flag<boolean>
  readonly quiet: Flag<boolean>
  readonly trace: Flag<boolean>
} = {
  debug: flag(bool, false, 'print when each step begins, too', { shorthand: 'd' }),
  quiet: flag(bool, false, 'print errors and results only', { shorthand: 'q' }),
  trace: flag(bool, false, 'print every call to a machine, too; implies --debug'),
}

export interface BuildFlags extends OutputFlags {
  readonly config: string
  readonly 'ssh-agent-auth': boolean
  readonly 'ignore-docker-version': boolean
  readonly 'etcd-binary': string
  readonly local: boolean
}

export const BUILD_FLAGS: typeof OUTPUT_FLAGS & {
  readonly config: Flag<string>
  readonly 'ssh-agent-auth': Flag<boolean>
  readonly 'ignore-docker-version': Flag<boolean>
  readonly 'etcd-binary': Flag<string>
  readonly local: Flag<boolean>
} = {
  ...OUTPUT_FLAGS,
  config: flag(string, '', 'cluster `file` (default: that of RKE_CONFIG, else cluster.yml)'),
  'ssh-agent-auth': flag(bool, false, 'use the SSH agent that SSH_AUTH_SOCK names'),
  'ignore-docker-version': flag(bool, false, 'has no effect: no machine needs Docker'),
  'etcd-binary': flag(
    string,
    '',
    'etcd `program` that is sent to machines of the etcd plane (default: the one in PATH here, else that of the machine)',
  ),
  local: flag(
    bool,
    false,
    'the cluster is this machine, without SSH; machines of the file do not count, nor need there be a file',
  ),
}

export interface CertificateFlags {
  readonly 'custom-certs': boolean
  readonly 'cert-dir': string
}

/** Of commands that take certificates which somebody else has signed. */
export const CERTIFICATE_FLAGS: {
  readonly 'custom-certs': Flag<boolean>
  readonly 'cert-dir': Flag<string>
} = {
  'custom-certs': flag(bool, false, 'use certificates of a folder'),
  'cert-dir': flag(string, '', '`folder` of certificates (default: cluster_certs beside cluster.yml)'),
}
