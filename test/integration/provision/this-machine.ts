/** Presents this machine to tests as a target of `hyperkube build`. */
const KINDS: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' }

/** As `uname -m` says it there; nothing where there is no such machine. */
export const kind: string = KINDS[process.arch] ?? ''

/** Why nothing of it can be tried here. */
export const skip: string | undefined = process.platform === 'linux' && kind !== '' ? undefined : 'machines have Linux'
