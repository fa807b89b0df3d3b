/** Computes the paths of pod volumes on disk, equal to upstream's. Pure. */

export interface PodPaths {
  /** `pods/<uid>`. */
  readonly pod: string
  readonly volumes: string
  readonly subPaths: string
  readonly plugins: string
  /** Directory of links to block devices. */
  readonly devices: string
  /** `volumes/kubernetes.io~empty-dir/<volume>`. */
  volume(plugin: string, name: string): string
  /** The marker file of a complete setup. */
  ready(wrapped: string): string
  subPath(volume: string, container: string, index: number): string
}

export const podsDir = (rootDir: string): string => `${rootDir}/pods`

export function podPaths(rootDir: string, uid: string): PodPaths {
  if (!isName(uid)) throw new Error(`invalid pod UID: ${uid}`)
  const pod = `${podsDir(rootDir)}/${uid}`
  const volumes = `${pod}/volumes`
  const subPaths = `${pod}/volume-subpaths`
  const plugins = `${pod}/plugins`
  const devices = `${pod}/volumeDevices`
  return {
    pod,
    volumes,
    subPaths,
    plugins,
    devices,
    volume: (plugin, name) => `${volumes}/${plugin.replaceAll('/', '~')}/${name}`,
    ready: (wrapped) => `${plugins}/kubernetes.io~empty-dir/${wrapped}/ready`,
    subPath: (volume, container, index) => `${subPaths}/${volume}/${container}/${index}`,
  }
}

/** True for a single path component without special meaning. */
const isName = (text: string): boolean => text !== '' && text !== '.' && text !== '..' && !/[/\0]/.test(text)
