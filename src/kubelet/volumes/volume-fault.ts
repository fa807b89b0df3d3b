/** Failure of a volume with a prefix other than `MountVolume.SetUp failed`. */
export class VolumeFault extends Error {
  override readonly name = 'VolumeFault'
  readonly phase: string

  constructor(phase: string, message: string) {
    super(message)
    this.phase = phase
  }
}
