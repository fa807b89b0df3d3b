/** Writes the systemd unit of the supervisor. Pure. */
import { unitValue, unitWord } from '#lib/systemd-text.ts'

export const UNIT = 'hyperkube-node.service'

export interface UnitPlan {
  /** The program and its arguments. */
  readonly command: readonly string[]
  /** The environment file with the token of an agent; it may be missing. */
  readonly environmentFile: string
}

/**
 * Only the supervisor ends with the main process of the unit: the three processes stay in its cgroup, and the next
 * supervisor adopts them. systemd does not restart after an intended end, such as the removal of the node.
 */
export function unitText({ command, environmentFile }: UnitPlan): string {
  return [
    '[Unit]',
    'Description=Keeps kubelet, flanneld and kube-proxy of this machine alive',
    'Wants=network-online.target',
    'After=network-online.target containerd.service',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=exec',
    `ExecStart=${command.map(unitWord).join(' ')}`,
    `EnvironmentFile=-${unitValue(environmentFile)}`,
    'SyslogIdentifier=hyperkube-node',
    'Restart=on-failure',
    'RestartSec=5s',
    'KillMode=process',
    'Delegate=yes',
    'TasksMax=infinity',
    'LimitNOFILE=1048576',
    'OOMScoreAdjust=-999',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n')
}

/** The environment file: one variable a line. Throws for values with line breaks. */
export function environmentText(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => {
      if (/[\n\r\0]/.test(value)) throw new Error(`the value of ${name} does not fit into one line`)
      return `${name}="${value.replaceAll(/[\\"$`]/g, '\\$&')}"\n`
    })
    .join('')
}
