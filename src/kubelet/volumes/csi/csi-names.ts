/** Computes names and paths of CSI volumes, equal to upstream's. Pure. */
import { createHash } from 'node:crypto'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

export const CSI_PLUGIN = 'kubernetes.io/csi'

/** The name of the VolumeAttachment. */
export const attachmentName = (handle: string, driver: string, node: string): string =>
  `csi-${sha256(`${handle}${driver}${node}`)}`

/** The handle of an ephemeral inline volume. */
export const inlineHandle = (podUid: string, volume: string): string => `csi-${sha256(`${podUid}${volume}`)}`

/** The name in `volumesInUse` and `volumesAttached` of a node. */
export const uniqueName = (driver: string, handle: string): string => `${CSI_PLUGIN}/${driver}^${handle}`

/** Describes the volume of a directory, for its removal. */
export const DATA_FILE = 'vol_data.json'

export interface CsiPaths {
  /** Directory of all staged volumes of a driver. */
  ofDriver(driver: string): string
  /** Directory of `vol_data.json` and `globalmount` of a staged volume. */
  device(driver: string, handle: string): string
  /** Directory of block volumes. */
  readonly devices: string
  readonly blockStagings: string
  blockStaging(volume: string): string
  blockPublish(volume: string, podUid: string): string
  blockPublishes(volume: string): string
  blockData(volume: string): string
  blockVolume(volume: string): string
}

export function csiPaths(rootDir: string): CsiPaths {
  const base = `${rootDir}/plugins/kubernetes.io/csi`
  const devices = `${base}/volumeDevices`
  const blockStagings = `${devices}/staging`
  return {
    ofDriver: (driver) => `${base}/${driver}`,
    device: (driver, handle) => `${base}/${driver}/${sha256(handle)}`,
    devices,
    blockStagings,
    blockStaging: (volume) => `${blockStagings}/${volume}`,
    blockPublishes: (volume) => `${devices}/publish/${volume}`,
    blockPublish: (volume, uid) => `${devices}/publish/${volume}/${uid}`,
    blockVolume: (volume) => `${devices}/${volume}`,
    blockData: (volume) => `${devices}/${volume}/data`,
  }
}
