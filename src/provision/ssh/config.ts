/**
 * Writes the configuration file of `ssh`. Addresses, users and paths are in this file and never in a command line. The
 * operator's own SSH configuration is ignored, so that a cluster.yml has the same effect on every machine. Pure.
 */
import { ProgramError } from '#lib/program.ts'

/** The SSH settings of one machine. Keys are files. */
export interface SshTarget {
  readonly address: string
  readonly port: number
  readonly user: string
  readonly keyFile?: string
  readonly certificateFile?: string
  /** The socket of an agent; undefined disables agents. */
  readonly agent?: string
}

export interface SshSettings {
  readonly target: SshTarget
  readonly bastion?: SshTarget
  readonly knownHostsFile: string
  /** True if a passphrase is available for encrypted keys. */
  readonly hasPassphrase: boolean
  readonly connectSeconds: number
}

/** The host aliases of the machine and the bastion in the file. */
export const TARGET = 'target'
const BASTION = 'bastion'

/** Throws ProgramError for values that the file format cannot express. */
export function sshConfig(settings: SshSettings): string {
  const { target, bastion } = settings
  const blocks = [
    ...(bastion === undefined ? [] : [host(BASTION, bastion, settings)]),
    [...host(TARGET, target, settings), ...(bastion === undefined ? [] : [`  ProxyJump ${BASTION}`])],
  ]
  return `${blocks.map((lines) => lines.join('\n')).join('\n')}\n`
}

function host(name: string, target: SshTarget, settings: SshSettings): string[] {
  const { address, port, user, keyFile, certificateFile, agent } = target
  const { knownHostsFile, hasPassphrase, connectSeconds } = settings
  return [
    `Host ${name}`,
    `  HostName ${value(address)}`,
    `  Port ${port}`,
    `  User ${value(user)}`,
    // A new host key is recorded; a changed one fails the connection.
    '  StrictHostKeyChecking accept-new',
    `  UserKnownHostsFile ${value(knownHostsFile)}`,
    '  GlobalKnownHostsFile none',
    `  HostKeyAlias ${value(port === 22 ? address : `[${address}]:${port}`)}`,
    '  HashKnownHosts no',
    '  UpdateHostKeys no',
    '  CheckHostIP no',
    '  PreferredAuthentications publickey',
    '  NumberOfPasswordPrompts 1',
    `  BatchMode ${hasPassphrase ? 'no' : 'yes'}`,
    `  IdentityAgent ${agent === undefined ? 'none' : value(agent)}`,
    ...(keyFile === undefined ? [] : ['  IdentitiesOnly yes', `  IdentityFile ${value(keyFile)}`]),
    ...(certificateFile === undefined ? [] : [`  CertificateFile ${value(certificateFile)}`]),
    `  ConnectTimeout ${connectSeconds}`,
    '  ConnectionAttempts 1',
    '  ServerAliveInterval 10',
    '  ServerAliveCountMax 3',
    '  ForwardAgent no',
    '  ForwardX11 no',
    '  ClearAllForwardings yes',
    '  RequestTTY no',
    '  ControlMaster no',
    '  ControlPath none',
    '  LogLevel ERROR',
  ]
}

/** Percent signs are special in some values, and quotes end a value. */
function value(text: string): string {
  if (text === '' || /["\n\r\\]/.test(text) || text.startsWith('-'))
    throw new ProgramError(`"${text}" cannot be part of an SSH connection`)
  return `"${text.replaceAll('%', '%%')}"`
}
