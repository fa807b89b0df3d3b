/** Flags of all `hyperkube build` commands, with RKE's names. */
import type { FlagsOf } from '#lib/flags/flag-support.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import type { BuildSettings, CertificateSettings, OutputSettings } from '#provision/builder/settings.ts'

/** The output flags. They may precede the command, as in `rke --debug up`. */
export const OUTPUT_FLAGS: FlagsOf<OutputSettings> = {
  debug: flag(bool, false, 'also print the start of each step', { shorthand: 'd' }),
  quiet: flag(bool, false, 'print only errors and results', { shorthand: 'q' }),
  trace: flag(bool, false, 'also print every call to a machine; implies --debug'),
}

export const BUILD_FLAGS: FlagsOf<BuildSettings> = {
  ...OUTPUT_FLAGS,
  config: flag(string, '', 'cluster `file` (default: RKE_CONFIG, or cluster.yml)'),
  'ssh-agent-auth': flag(bool, false, 'use the SSH agent at SSH_AUTH_SOCK'),
  'ignore-docker-version': flag(bool, false, 'has no effect: no machine needs Docker'),
  'etcd-binary': flag(
    string,
    '',
    'etcd `program` to upload to machines of the etcd plane (default: the one in the local PATH, or the one installed on the machine)',
  ),
  local: flag(
    bool,
    false,
    'use this machine as the cluster, without SSH; ignore the machines of the file, which need not exist',
  ),
}

/** Flags of commands that accept certificates from an external authority. */
export const CERTIFICATE_FLAGS: FlagsOf<CertificateSettings> = {
  'custom-certs': flag(bool, false, 'use the certificates of a folder'),
  'cert-dir': flag(string, '', '`folder` of certificates (default: cluster_certs beside cluster.yml)'),
}
